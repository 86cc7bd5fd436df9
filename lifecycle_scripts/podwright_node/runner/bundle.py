"""The folder that HyperPod copied to this node."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from .failure import Failure

MANIFEST = "manifest.json"


def verify(bundle: Path) -> None:
    """Check that every published file arrived whole.

    Raises:
        Failure: the manifest or a file is missing or differs.
    """
    manifest = bundle / MANIFEST
    if not manifest.is_file():
        raise Failure(f"{manifest} is missing: the prefix was not fully published", "deploy the cluster's stack again")
    wrong = [
        name
        for name, digest in sorted(json.loads(manifest.read_text(encoding="utf-8"))["files"].items())
        if not (bundle / name).is_file() or hashlib.sha256((bundle / name).read_bytes()).hexdigest() != digest
    ]
    if wrong:
        raise Failure(
            f"{', '.join(wrong)} in {bundle} differ from what was published",
            "let HyperPod replace the node; if others fail alike, look who else writes to the scripts' S3 prefix",
        )
