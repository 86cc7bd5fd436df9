"""What environments cost, and where prices come from."""

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from podwright.config.catalog.facts import cited, table
from podwright.config.catalog.instance_types import catalog
from podwright.config.catalog.prices import Price, hourly, service_items, service_price
from podwright.config.catalog.regions import regions
from podwright.config.loading.project import Project
from podwright.config.settings.environment import Environment
from podwright.operations import cli
from podwright.operations.environments.costs import brief, lines
from podwright.planning.cost.costs import by_stack, by_team, costs, included_metadata_iops, total, upfronts
from podwright.planning.rules.run import findings
from rule_pages import loaded
from screens import text_of

DAY = date(2026, 11, 21)
OWN = Price(20.0, "file", "set by the environment")


def environment(piece: str) -> Environment:
    return loaded(piece).environment


def item(actual: Environment, name: str) -> Any:
    (only,) = [cost for cost in costs(actual, DAY) if cost.name == name]
    return only


def test_every_price_is_of_a_known_type_in_a_known_region_and_has_a_source() -> None:
    rows = table("prices")
    assert len({(row["type"], row["region"], row["basis"]) for row in rows}) == len(rows)
    for row in rows:
        assert row["type"] in catalog()
        assert row["region"] in regions()
        assert float(row["usd_per_hour"]) > 0
        assert cited(row["source"])


def test_the_same_type_costs_of_the_same_order_everywhere() -> None:
    """A list that mixes in dedicated tenancy, other systems or older prices stands out."""
    for row in table("prices"):
        here = hourly(row["type"], "us-east-1")
        if here and here.basis == row["basis"]:
            assert 0.5 < float(row["usd_per_hour"]) / here.usd < 2, row


def test_home_folders_in_two_zones_have_a_price_of_their_own() -> None:
    one = "storage: {home: {openzfs: {zone: usw2-az2"
    two = f"{one}, deployment: multi_az_1, standby_zone: usw2-az3"
    paid = "prices: {openzfs_storage: 0.1, openzfs_multi_az_storage: 0.2}"
    amounts = []
    for text, name in ((one, "openzfs_storage"), (two, "openzfs_multi_az_storage")):
        priced = item(environment(f"{text}}}}}}}\n{paid}"), name).price
        amounts.append(priced.usd)
    assert amounts == [0.1, 0.2]


def test_what_nobody_sells_has_no_price_and_leaves_the_budget_a_lower_bound() -> None:
    resolved_environment = environment(
        "storage: {lustre: {zone: usw2-az2, capacity_gib: 4800, throughput: 400}}\n"
        "observability: {budget_usd_per_month: 1}"
    )
    assert item(resolved_environment, "lustre_ssd_400").price is None
    output = {finding.id: finding.message for finding in findings(resolved_environment)}
    assert "throughput is 400" in output["STO001"]
    assert "costs at least $" in output["OBS050"]


def test_alerts_have_a_key_of_their_own() -> None:
    keys = [cost.stack for cost in costs(environment("observability: {}"), DAY) if cost.name == "kms_key"]
    assert keys == ["network", "observability"]


def test_hyperpods_own_price_wins_and_the_files_wins_over_it() -> None:
    own = hourly("ml.p4d.24xlarge", "us-west-2")
    assert own
    assert own.basis == "hyperpod"
    assert not own.lower_bound
    assert hourly("ml.p4d.24xlarge", "us-west-2", {"ml.p4d.24xlarge": OWN}) == OWN


def test_ec2s_price_is_a_lower_bound() -> None:
    for kind, region in (("ml.p4d.24xlarge", "us-west-2"), ("ml.g5.8xlarge", "us-east-1")):
        rows = {
            row["basis"]: float(row["usd_per_hour"])
            for row in table("prices")
            if (row["type"], row["region"]) == (kind, region)
        }
        assert 1.17 < rows["hyperpod"] / rows["ec2"] < 1.26
    price = hourly("ml.p5en.48xlarge", "us-west-2")
    assert price
    assert price.lower_bound
    assert "2026-08-26" in price.source


@pytest.mark.parametrize("kind", ["ml.p5e.48xlarge", "ml.p6e-gb200.36xlarge", "ml.trn2.48xlarge"])
def test_what_no_list_prints_has_no_price(kind: str) -> None:
    assert hourly(kind, "us-east-1") is None


def test_services_have_prices_by_region_or_everywhere() -> None:
    assert service_price("eks_control_plane", "ap-south-1") == service_price("eks_control_plane", "us-east-1")
    assert service_price("nat_gateway", "ap-south-1") is None
    assert service_price("nat_gateway", "us-west-2", {"nat_gateway": OWN}) == OWN
    assert {item.unit.rpartition("-")[2] for item in service_items().values()} == {"hour", "month"}


def test_instances_cost_by_where_they_come_from() -> None:
    resolved_environment = environment("""
        training_plans:
          q1: {zone: usw2-az2, instance_type: ml.p5en.48xlarge, count: 4, days: 7, start_after: 2027-01-04,
               purchase: true, max_upfront_usd: 40000}
        instance_groups:
          h200: {capacity: {training_plan: q1}}
          burst: {instance_type: ml.p4d.24xlarge, count: 2, zone: usw2-az2, capacity: spot}
          mine: {instance_type: ml.p4d.24xlarge, count: 2, zone: usw2-az2, capacity: account_team}
          mixed: {instance_types: [ml.g5.12xlarge, ml.g5.48xlarge], count: 3, zone: usw2-az2}
        """)
    assert item(resolved_environment, "h200").monthly == 0
    assert item(resolved_environment, "burst").monthly is None
    assert item(resolved_environment, "burst").settable == ()
    assert item(resolved_environment, "mine").monthly == pytest.approx(2 * 25.91001756 * 730)
    assert item(resolved_environment, "mixed").monthly == pytest.approx(3 * 16.288 * 730)
    assert [(fee.plan, fee.at_most) for fee in upfronts(resolved_environment)] == [("q1", 40000)]


PAID = """
    training_plans:
      q1: {arn: "arn:aws:sagemaker:us-west-2:111122223333:training-plan/q1", zone: usw2-az2, %s}
    instance_groups: {h200: {capacity: {training_plan: q1}}}
    governance: {teams: {a: {quota: {h200: 1}}, b: {quota: {h200: 3}}}}
    observability: {budget_usd_per_month: 100000}
    """


@pytest.mark.parametrize(
    ("settings", "usd", "monthly"),
    [
        # 4 instances for 7 days.
        ("count: 4, days: 7, paid_usd: 26880", 40, 26880),
        # The file's dates count, not what was asked for.
        ("count: 4, days: 9, start: 2027-01-04, end: 2027-01-11, paid_usd: 26880", 40, 26880),
        # The groups' own count, without one of the plan.
        ("days: 7, paid_usd: 26880", 40, 26880),
        # Of a plan that is longer a month has 730 hours.
        ("count: 4, days: 182, paid_usd: 698880", 40, 4 * 40 * 730),
        # Two parts of 4 and 2 instances for a week each.
        (
            "windows: [{start: 2027-01-04, end: 2027-01-11, count: 4, zone: usw2-az2}, "
            "{start: 2027-02-01, end: 2027-02-08, count: 2, zone: usw2-az2}], paid_usd: 40320",
            40,
            40320,
        ),
        # Eighteen instances of an UltraServer, of which the group has four.
        ("ultraserver_type: ml.u-p6e-gb200x72, ultraserver_count: 1, days: 1, paid_usd: 43200", 100, 9600),
    ],
)
def test_a_plan_that_is_paid_costs_its_price_by_instance_hour(settings: str, usd: float, monthly: float) -> None:
    actual = environment(PAID % settings)
    price = item(actual, "h200").price
    assert price, "the file says what was paid"
    assert price.usd == pytest.approx(usd)
    assert item(actual, "h200").monthly == pytest.approx(monthly)
    rows = {row.team: row for row in by_team(actual, costs(actual, DAY))}
    assert rows["b"].total.hourly == pytest.approx(3 * usd)
    assert (rows["b"].upfront, rows["b"].total.exact) == (0, True)
    # It is on no later bill, so no budget of a month has to hold it.
    assert total(costs(actual, DAY)).prepaid == pytest.approx(monthly)
    assert "OBS050" not in {finding.id for finding in findings(actual)}


def test_a_plan_that_exists_without_what_was_paid_is_unknown() -> None:
    actual = environment(PAID % "count: 4, days: 7")
    assert item(actual, "h200").monthly is None
    rows = {row.team: row for row in by_team(actual, costs(actual, DAY))}
    assert not rows["a"].total.exact
    printed = text_of(lines(actual, costs(actual, DAY), DAY))
    assert "No price is known for plan q1" in printed
    assert "Spot has no price" not in printed


def test_prod_shows_what_its_plan_costs() -> None:
    prod = Project.at(Path(__file__).parents[3]).load("prod").environment
    assert item(prod, "h200").price.usd == pytest.approx(44)
    teams = {row.team: row.total.hourly for row in by_team(prod, costs(prod, DAY))}
    assert teams["research"] == pytest.approx(440)
    assert "$473,088 of a month paid with training plans" in brief(prod, DAY)["summary"]


def test_a_mixed_group_with_one_unknown_price_is_unknown() -> None:
    resolved_environment = environment(
        "instance_groups: {more: {instance_types: [ml.p5e.48xlarge, ml.p5.48xlarge], count: 1, zone: usw2-az2}}"
    )
    assert item(resolved_environment, "more").monthly is None
    assert item(resolved_environment, "more").settable == ("ml.p5e.48xlarge",)


def test_prices_of_the_file_make_a_sum_exact() -> None:
    names = [cost for cost in costs(environment("{}"), DAY) if cost.price is None or cost.price.lower_bound]
    expected = {name for cost in names for name in cost.settable} | {"ml.m5.4xlarge", "ml.p5en.48xlarge"}
    resolved_environment = environment(json.dumps({"prices": dict.fromkeys(expected, 2)}))
    sums = total(costs(resolved_environment, DAY))
    assert sums.exact
    assert not total(costs(environment("{}"), DAY)).exact
    # At $2: two system nodes and four h200. By the list: the control plane, 14 endpoints in 2 zones, 2 NAT gateways.
    by_hour = (2 + 4) * 2 + 0.10 + 14 * 2 * 0.01 + 2 * 0.045
    # 9,600 GiB of Lustre and 100 GB of each node's root volume at $2, and the key.
    assert sums.monthly == pytest.approx(by_hour * 730 + (9600 + 600) * 2 + 1)
    assert sums.monthly == pytest.approx(
        sum(part.monthly for part in by_stack(costs(resolved_environment, DAY)).values())
    )


def test_an_old_kubernetes_costs_six_times_as_much() -> None:
    old = environment('cluster: {eks: {version: "1.30"}}')
    assert item(old, "eks_extended_support").price.usd == pytest.approx(0.60)
    assert item(environment("{}"), "eks_control_plane").price.usd == pytest.approx(0.10)


def test_what_is_adopted_is_not_counted() -> None:
    resolved_environment = environment("""
        network: {nat: single}
        storage:
          kms_key: arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef
          lustre: {existing: {id: fs-0123456789abcdef0, mount_name: fsx, security_group: sg-0123456789abcdef0},
                   efa: null, throughput: null, backups: null}
        """)
    names = [cost.name for cost in costs(resolved_environment, DAY)]
    assert not {"kms_key", "lustre_ssd_250"} & set(names)
    assert item(resolved_environment, "nat_gateway").quantity == 1


@pytest.mark.parametrize(
    ("gib", "iops"),
    [
        (1200, 1500),
        (2400, 3000),
        (4800, 6000),
        (9600, 6000),
        (12000, 12000),
        (45600, 12000),
        (48000, 24000),
        (50400, 36000),
    ],
)
def test_metadata_operations_that_are_included(gib: int, iops: int) -> None:
    assert included_metadata_iops(gib) == iops


def test_teams_pay_by_quota_and_the_rest_is_nobodys() -> None:
    resolved_environment = environment("""
        prices: {ml.p5en.48xlarge: 10}
        governance: {teams: {a: {quota: {h200: 1}}, b: {quota: {h200: 2}}}}
        """)
    rows = {row.team: row for row in by_team(resolved_environment, costs(resolved_environment, DAY))}
    assert {team: row.instances for team, row in rows.items()} == {"a": 1, "b": 2, None: 1 + 2}
    assert rows["b"].total.hourly == pytest.approx(20)
    assert rows["b"].total.exact


def test_parts_of_instances_cost_their_part() -> None:
    resolved_environment = environment("""
        prices: {ml.p5en.48xlarge: 10}
        governance:
          teams:
            a: {quota: {h200: {accelerators: 4}}}
            b: {quota: {ml.p5en.48xlarge: {memory_gib: 1024}}}
        """)
    rows = {row.team: row for row in by_team(resolved_environment, costs(resolved_environment, DAY))}
    assert {team: row.instances for team, row in rows.items()} == {"a": 0.5, "b": 0.5, None: 3 + 2}
    assert rows["a"].total.hourly == pytest.approx(5)


def test_promises_beyond_what_there_is_are_cut_in_proportion() -> None:
    resolved_environment = environment("""
        training_plans:
          q1: {zone: usw2-az2, instance_type: ml.p5en.48xlarge, count: 4, days: 7, start_after: 2027-01-04,
               purchase: true, max_upfront_usd: 40000}
        instance_groups: {h200: {capacity: {training_plan: q1}}}
        governance: {teams: {a: {quota: {h200: 6}}, b: {quota: {h200: 2}}}}
        """)
    rows = {row.team: row for row in by_team(resolved_environment, costs(resolved_environment, DAY))}
    assert (rows["a"].instances, rows["b"].instances) == (3, 1)
    assert (rows["a"].upfront, rows["b"].upfront) == (30000, 10000)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/one.yaml").write_text("""
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
cluster: {eks: {admins: ["arn:aws:iam::111122223333:role/MlPlatform"]}}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  burst: {instance_type: ml.p5.48xlarge, count: 2, capacity: spot, taints: [{key: spot, effect: NoSchedule}]}
prices: {nat_gateway: 0.05}
""")
    return tmp_path


def test_the_command_says_what_is_known_and_what_is_not(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["cost", "one", "--project", str(project)]) == 0
    printed = capsys.readouterr().out
    assert "ml.m5.4xlarge on demand" in printed
    assert "≥ $0.768" in printed
    assert "set by the environment" in printed
    assert "Spot has no price in advance: burst." in printed
    assert "No price is known of node_volume. `podwright prices fetch` asks AWS for them" in printed
    # Most of what a cluster costs is accelerators: without their price a figure would mislead.
    assert re.search(r"^together +unknown +unknown +2 without a price$", printed, re.MULTILINE)
    assert re.search(r"sum with them is unknown: burst. Everything else costs at least \$[0-9,]+ a month", printed)


def test_the_command_as_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["cost", "one", "--json", "--project", str(project)]) == 0
    actual = json.loads(capsys.readouterr().out)
    assert actual["total"]["monthly"] == pytest.approx(sum(item["monthly"] or 0 for item in actual["items"]))
    assert actual["total"]["unknown"] == 2
    assert {row["team"] for row in actual["teams"]} == {None}
    assert actual["items"][0] | {"what": ""} == {
        "stack": "network",
        "name": "nat_gateway",
        "what": "",
        "quantity": 2,
        "unit": "hour",
        "price": {"usd": 0.05, "basis": "file", "source": "set by the environment"},
        "group": None,
        "settable": [],
        "unpaid_plan": None,
        "accelerated": False,
        "hours": 730,
        "monthly": 73.0,
    }


def test_a_file_with_errors_has_no_cost(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / "environments/one.yaml"
    file.write_text(file.read_text().replace("[usw2-az1, usw2-az2]", "[usw2-az1]"))
    assert cli.main(["cost", "one", "--project", str(project)]) == 1
    assert "has 1 error" in capsys.readouterr().err


def test_a_control_plane_says_when_it_becomes_dearer() -> None:
    what = item(environment("{}"), "eks_control_plane").what
    assert what == "control plane, Kubernetes 1.34 in standard support until 2026-12-02, then $0.60 an hour"
    changed = environment("prices: {eks_extended_support: 0.5}")
    assert item(changed, "eks_control_plane").what.endswith("then $0.50 an hour")
