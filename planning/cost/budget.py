"""What AWS Budgets takes, and when people hear of a budget.

Sources: AWS Budgets API Reference, CreateBudget; AWS Cost Management User Guide, "Managing your costs with AWS
Budgets", 2026-11.
"""

from typing import Final

MAX_ADDRESSES: Final = 10
"""Mail addresses that a budget tells at one mark, besides one SNS topic."""
BUDGET_MARKS: Final = (("ACTUAL", 50), ("ACTUAL", 80), ("ACTUAL", 100), ("FORECASTED", 100))
"""At which percentages it tells, of what was spent and of what AWS expects of the month. At most five."""
