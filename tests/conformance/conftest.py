"""Cases of Kueue's own tests are no part of this repository: without their folder nothing is collected here."""

import os

collect_ignore = [] if os.environ.get("PODWRIGHT_KUEUE_CASES") else ["test_kueue_cases.py"]
