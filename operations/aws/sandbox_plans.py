"""Training plans that an environment file names and that were bought in AWS: the sandbox takes them to exist.

So an environment can be tried whose plans are another account's. Plans of the sandbox's own account were bought in it,
or do not exist. Cheap to import: nothing of AWS is loaded here.
"""

import json
from typing import Any

from ...config.catalog.instance_types import catalog
from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ...config.errors import CommandError
from ...config.settings.environment import Environment

_PATH = "/podwright/training-plans"


def register_plan(environment: Environment, endpoint: str) -> None:
    """Tell the sandbox at `endpoint` of the plans that the file says exist and that it does not know yet.

    Raises:
        CommandError: it cannot have such a plan.
    """
    named = existing_plans(environment)
    if not named:
        return
    url = f"{endpoint}{_PATH}?account={environment.account}&new=true&region={environment.region}"
    known = {plan["arn"] for plan in call(url, None)["plans"]}
    if missing := [plan for plan in named if plan["arn"] not in known]:
        call(url, {"region": environment.region, "existing": missing})


def existing_plans(environment: Environment) -> list[dict[str, Any]]:
    """The plans of other accounts, as the sandbox wants to be told of them.

    What the file leaves out is as its groups need it: the type of the first group on the plan, the count of all.
    """
    result = list[dict[str, Any]]()
    for name, plan in environment.training_plans.items():
        if plan.arn is None or f":{SANDBOX_ACCOUNT}:" in plan.arn:
            continue
        groups = [group for group in environment.groups.values() if group.plan == name]
        types = [plan.instance_type, *(each for group in groups for each in group.types)]
        server = catalog().ultraservers.get(plan.ultraserver_type or "")
        whole = server.instances * (plan.ultraserver_count or 1) if server else 0
        count = whole or plan.count or sum(group.count for group in groups) or 1
        parts = plan.windows or (plan,)
        result.append(
            {
                "arn": plan.arn,
                "instance_type": next((each for each in types if each), ""),
                "ultraserver_type": plan.ultraserver_type or "",
                "spares": (plan.spares_per_ultraserver or 0) if server else 0,
                "parts": [
                    {
                        "zone": part.zone,
                        "count": (part.count or count) if plan.windows else count,
                        "start": part.start.isoformat() if part.start else None,
                        "end": part.end.isoformat() if part.end else None,
                    }
                    for part in parts
                ],
            }
        )
    return result


def call(url: str, body: Any) -> Any:
    """Read from the sandbox what AWS has no operation for, or tell it. Raises CommandError with what it refuses."""
    # Only files with such plans need them, and each command loads this module.
    import urllib.error
    import urllib.request

    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, content, method="GET" if body is None else "PUT")
    # No proxy of the user's sees what stays on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise CommandError(
            f"the sandbox cannot have what the file says exists: {error.read().decode().strip()}"
        ) from None
