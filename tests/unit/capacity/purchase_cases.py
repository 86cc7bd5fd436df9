"""Every way in which a purchase can go wrong, as cases: one by one, and by chance. `purchase_account` plays them."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from podwright.planning.purchase.observations import READS_AFTER
from podwright.planning.purchase.record import TABLE, Record
from podwright.planning.purchase.steps import Call, Steps
from purchase_account import FAULTS, Buyer, Fault, alone, by_turns, closed, is_unknown, verdict
from purchase_aws import Bought, Flow, PurchaseAccount, plan_shape

FLOWS: tuple[Flow, ...] = ("reserve", "acquire", "extend")
VARIANTS = ("refuse", "allow")
STALE = (0, 1, 2, 5, 6, 7, 20)
"""Lists that do not show yet what was bought: fewer and more than a run looks."""
RANDOM_SCHEDULES = 10_000
SHARDS = 4
Case = tuple[str, Callable[[], list[str]]]
Scene = Callable[[str], PurchaseAccount]


def empty(duplicates: str) -> PurchaseAccount:
    """Nothing was bought yet."""
    return PurchaseAccount(duplicates)


def failed_before(duplicates: str) -> PurchaseAccount:
    """The plan was bought, and has failed since."""
    purchase_account = empty(duplicates)
    alone(Buyer("reserve", "long ago", purchase_account))
    purchase_account.plans[0].shape |= {"Status": "Failed", "StatusMessage": "the payment did not go through"}
    return purchase_account


def record_lost(duplicates: str) -> PurchaseAccount:
    """There is a plan of the name, and nobody knows why."""
    purchase_account = empty(duplicates)
    purchase_account.plans.append(Bought(plan_shape("prod-q1", "arn:0"), "somebody"))
    return purchase_account


def stale_account(scene: Scene, variant: str, stale: int) -> PurchaseAccount:
    purchase_account = scene(variant)
    purchase_account.stale = stale
    for plan in purchase_account.plans if scene is record_lost else ():
        plan.unseen = stale
    return purchase_account


def calls_of(flow: Flow, scene: Scene) -> int:
    return alone(Buyer(flow, "one", scene("refuse"))).calls


def one_buyer(flow: Flow, scene: Scene, variant: str, stale: int) -> Iterator[Case]:
    """Every fault at every call, with stale lists, and another run at once."""
    for call in range(calls_of(flow, scene)):
        for fault in FAULTS:

            def case(call: int = call, fault: Fault = fault) -> list[str]:
                purchase_account = stale_account(scene, variant, stale)
                first = alone(Buyer(flow, "one", purchase_account, {call: fault}))
                if is_unknown(first) and fault in ("throttled", "denied") and scene is not record_lost:
                    first.wrong.append(f"says that it is unknown, and it was {fault}")
                return verdict(purchase_account, [first, alone(Buyer(flow, "two", purchase_account))], flow)

            yield f"{flow} {variant} {scene.__name__} stale {stale}: {fault} at call {call}, then a second run", case


def two_buyers(flow: Flow, scene: Scene, variant: str, stale: int, faults: dict[int, Fault]) -> Iterator[Case]:
    """Another buyer comes before each call of one: at once, as if that one were away, or by turns.

    When the other one has to leave it unknown and nothing was bought, a person closes it and buys before the first one
    continues.
    """
    for comes in range(calls_of(flow, scene) + READS_AFTER * bool(faults and stale)):
        for waits in (True, False):

            def case(comes: int = comes, waits: bool = waits) -> list[str]:
                purchase_account = stale_account(scene, variant, stale)
                first, second = Buyer(flow, "one", purchase_account, dict(faults)), Buyer(flow, "two", purchase_account)
                while not first.over and first.calls < comes:
                    first.go_on()
                while not second.over:
                    (first if waits and second.sleeps and not (first.over or first.sleeps) else second).go_on()
                more = []
                if is_unknown(second) and not (purchase_account.sold(flow) or purchase_account.late):
                    more = [closed(second), alone(Buyer(flow, "three", purchase_account))]
                buyers = [alone(first), second, *more]
                raised = [f"raised {buyer.error!r}" for buyer in buyers if buyer.error and not faults]
                return raised + verdict(purchase_account, buyers, flow)

            turns = "by turns" if waits else "at once"
            what = f"{flow} {variant} {scene.__name__} stale {stale}"
            yield f"{what}: {faults}, a second before call {comes}, {turns}", case


def every_case(flow: Flow, variant: str) -> Iterator[Case]:
    calls = calls_of(flow, empty)
    for stale in STALE:
        yield from one_buyer(flow, empty, variant, stale)
        yield from two_buyers(flow, empty, variant, stale, {})
        # The call that charges is the last but one.
        yield from two_buyers(flow, empty, variant, stale, {calls - 2: "lost after"})
    for call in range(calls):
        for fault in FAULTS:
            yield from two_buyers(flow, empty, variant, 0, {call: fault})
    if flow == "extend":
        return
    yield from one_buyer(flow, failed_before, variant, 0)
    yield from two_buyers(flow, failed_before, variant, 0, {})
    # A plan that no record knows and no list shows cannot be known of: the service has to refuse its name.
    for stale in STALE if variant == "refuse" else (0,):
        yield from one_buyer(flow, record_lost, variant, stale)
        yield from two_buyers(flow, record_lost, variant, stale, {})


def random_case(seed: int) -> Case:
    """Two or three buyers with a few faults each, in any order, on any day."""
    chance = random.Random(seed)
    flow: Flow = chance.choice(FLOWS)
    scene = chance.choice([empty] if flow == "extend" else [empty, empty, failed_before, record_lost])
    variant, stale = chance.choice(VARIANTS), chance.choice((0, 0, 0, *STALE)) if scene is not record_lost else 0

    def case() -> list[str]:
        purchase_account = scene(variant)
        purchase_account.stale = stale
        flows = ("extend",) if flow == "extend" else ("reserve", "acquire")
        buyers = [
            Buyer(
                chance.choice(flows),
                name,
                purchase_account,
                {chance.randrange(16): chance.choice(FAULTS) for _ in range(chance.randrange(4))},
            )
            for name in ("one", "two", "three")[: chance.randint(2, 3)]
        ]
        by_turns(buyers, iter(lambda: chance.randrange(6), None))
        return verdict(purchase_account, buyers, flow)

    return f"seed {seed}", case


def violations(cases: Iterator[Case]) -> Iterator[str]:
    for name, case in cases:
        for problem in case():
            yield f"{name}: {problem}"


def without_condition(record: Record, observed: Record | None) -> Steps[Record]:
    record = replace(record, revision=observed.revision + 1 if observed else 1)
    yield Call("dynamodb", "put_item", {"TableName": TABLE, "Item": record.to_item()})
    return record


def without_looking(record: Record, reads: int, *, patient: bool = False) -> Steps[list[object]]:
    yield from ()
    return []


MUTATIONS: dict[str, object] = {"write": without_condition, "find": without_looking}
"""What takes the lock or the look-up away, by the name that `plan_run` has for it."""
