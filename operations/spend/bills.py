"""What AWS itself says of money: the budget, and the bill. Both are hours to a day behind."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

from ...config.settings.environment import Environment
from ...planning.cost.cost_tags import ENVIRONMENT_TAG
from ..aws.account import Account
from ..aws.calls import get, pages_by_token
from ..aws.deployed import physical_id

REQUEST_USD = 0.01
"""What a request to Cost Explorer costs. Source: AWS Cost Explorer pricing, 2026-11."""


def budget(account: Account, environment: Environment) -> dict[str, Any]:
    """What was spent of the budget this month, and what AWS expects. Raises CommandError and ClientError."""
    name = physical_id(account, f"{environment.name}-observability", "AWS::Budgets::Budget")
    result = get(account, "budgets", "describe_budget", AccountId=account.id, BudgetName=name)["Budget"]
    spend = result.get("CalculatedSpend", {})
    return {
        "limit_usd": float(result["BudgetLimit"]["Amount"]),
        "actual_usd": _amount(spend.get("ActualSpend")),
        "forecast_usd": _amount(spend.get("ForecastedSpend")),
        "updated": result["LastUpdatedTime"].astimezone(UTC).isoformat(timespec="minutes")
        if "LastUpdatedTime" in result
        else None,
    }


def bill(account: Account, environment: Environment, last: date, days: int) -> dict[str, float]:
    """US dollars by service of what carries the environment's tag, the dearest first; it costs REQUEST_USD a page."""
    request: dict[str, Any] = {
        "TimePeriod": {"Start": str(last - timedelta(days=days - 1)), "End": str(last + timedelta(days=1))},
        "Granularity": "MONTHLY",
        "Metrics": ["UnblendedCost"],
        "Filter": {"Tags": {"Key": ENVIRONMENT_TAG, "Values": [environment.name]}},
        "GroupBy": [{"Type": "DIMENSION", "Key": "SERVICE"}],
    }
    sums: dict[str, float] = {}
    parts = pages_by_token(account, "ce", "get_cost_and_usage", "ResultsByTime", "NextPageToken", **request)
    for group in (group for part in parts for group in part.get("Groups", ())):
        (service,) = group["Keys"]
        sums[service] = sums.get(service, 0.0) + float(group["Metrics"]["UnblendedCost"]["Amount"])
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def day_of(timestamp: float) -> date:
    """The day in UTC of seconds since the epoch."""
    return datetime.fromtimestamp(timestamp, UTC).date()


def _amount(spend: dict[str, str] | None) -> float | None:
    return float(spend["Amount"]) if spend else None
