"""What a change set does: pairs of templates, and the lists, tables and rules behind the answers."""

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from itertools import pairwise, permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from effect_cases import CASES, SNAPSHOTS, Case, Templates, at, drop, edited, put, put_group, resource, reviewed
from effect_cases import unprotected as without_protection
from podwright.config.catalog.facts import DATA
from podwright.config.errors import CommandError
from podwright.config.loading.project import Project
from podwright.config.settings.approvals import ApprovedChange
from podwright.operations.aws.clusters import Cluster
from podwright.operations.effects import document as effects_document
from podwright.operations.effects.approval import answered, entry, needs, stop_unapproved
from podwright.operations.effects.changes import ResourceChange, Row, changes
from podwright.operations.effects.compare import differences
from podwright.operations.effects.cost import costs, items
from podwright.operations.effects.counts import Group, falls, groups_of
from podwright.operations.effects.document import ChangeSet, data_at_risk, document, duration, nodes_restarted
from podwright.operations.effects.show import _differing, lines
from podwright.operations.effects.templates import pairs, synthesized
from podwright.operations.kubernetes.applied_objects import APPLIED
from podwright.operations.output.console import write_line
from podwright.planning.cost.costs import costs as costs_of_file
from podwright.planning.cost.costs import total
from podwright.planning.cost.plan_prices import hours_by_group, paid_by_group
from podwright.planning.delivery.effects import ChangeFacts, Effect, change_facts, reasons, stateful, worst
from podwright.sandbox.cloudformation.schemas import find as schema_of
from screens import screen, text_of

ROOT = Path(__file__).parents[3]
ENVIRONMENTS = sorted(folder.name for folder in SNAPSHOTS.iterdir())


def compared(
    old: Templates, new: Templates, environment: str = "prod", live: dict[str, Group] | None = None
) -> ChangeSet:
    both = pairs(old, new)
    resource_changes = changes(both, environment)
    lower = falls(resource_changes, live or {})
    priced = costs(both, "us-west-2", {}, 0, {})
    expected = needs(resource_changes, lower)
    return ChangeSet(environment, "111122223333", "us-west-2", resource_changes, lower, priced, [], False, expected)


def harm(change_set: ChangeSet) -> set[str]:
    """Why it is refused, apart from what CloudFormation would refuse: exports that others import."""
    return {need.id for need in change_set.approvals if need.refused} - {"CHG008"}


def asked(change_set: ChangeSet) -> set[str]:
    return {f"{need.id} {need.name}" for need in change_set.approvals}


@pytest.mark.parametrize(
    ("path", "value", "type_name"),
    [
        ("EksCluster/KubernetesNetworkConfig/ServiceIpv4Cidr", "172.20.0.0/16", "AWS::EKS::Cluster"),
        ("Home/OpenZFSConfiguration/DeploymentType", "SINGLE_AZ_HA_2", "AWS::FSx::FileSystem"),
        ("Home/OpenZFSConfiguration/RouteTableIds", ["rtb-0123456789abcdef0"], "AWS::FSx::FileSystem"),
        ("Home/OpenZFSConfiguration/EndpointIpAddressRange", "198.18.0.0/28", "AWS::FSx::FileSystem"),
        ("Home/OpenZFSConfiguration/PreferredSubnetId", "subnet-0123456789abcdef0", "AWS::FSx::FileSystem"),
        ("Home/OpenZFSConfiguration/RootVolumeConfiguration/DataCompressionType", "ZSTD", "AWS::FSx::FileSystem"),
        ("Cluster/VpcConfig/SecurityGroupIds", ["sg-1", "sg-2"], "AWS::SageMaker::Cluster"),
    ],
)
def test_what_is_chosen_once_replaces(path: str, value: Any, type_name: str) -> None:
    """Whatever else follows from it."""
    case = Case("chosen once", "No update takes it.", put(path, value), set())
    effects = [change.effect for change in compared(reviewed("prod"), edited(case)).changes if change.type == type_name]
    assert effects == [Effect.REPLACES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_effects_of_a_pair(case: Case) -> None:
    change_set = compared(reviewed(case.environment), edited(case), case.environment)
    touched = {f"{change.type.rpartition('::')[2]} {change.action} {change.effect}" for change in change_set.changes}
    assert touched == case.touches, case.fact
    assert asked(change_set) == case.needs, case.fact
    assert {row["group"] for row in nodes_restarted(change_set)} == case.restarts, case.fact
    assert {row["type"].rpartition("::")[2] for row in data_at_risk(change_set)} == case.at_risk, case.fact


# From what nobody notices to what nobody can undo, as docs/operator.md tells them apart.
BY_HARM = (
    "in_place",
    "later_nodes",
    "adds_nodes",
    "restarts_pods",
    "unknown",
    "interrupts",
    "removes_nodes",
    "rolls_nodes",
    "refused",
    "replaces",
    "deletes_data",
)


@pytest.mark.parametrize(
    ("effects", "expected"),
    [
        ((), "in_place"),
        (("in_place", "deletes_data", "later_nodes"), "deletes_data"),
        (("deletes_data", "in_place"), "deletes_data"),
        (("in_place", "deletes_data"), "deletes_data"),
        *[((lower, higher), higher) for lower, higher in pairwise(BY_HARM)],
        *[((higher, lower), higher) for lower, higher in pairwise(BY_HARM)],
    ],
)
def test_the_worst_counts_wherever_it_stands(effects: Sequence[str], expected: str) -> None:
    assert worst(map(Effect, effects)) is Effect(expected)


def test_a_change_is_as_bad_as_the_worst_of_its_properties() -> None:
    """Whichever of them the template names first."""
    rows = [Row(name, name, "modify", 1, 2, ChangeFacts(Effect(name))) for name in ("in_place", "replaces", "unknown")]
    for order in permutations(rows):
        change = ResourceChange("prod", "prod-a", "Id", "AWS::X::Y", "", "update", list(order))
        assert change.effect is Effect.REPLACES


def test_there_are_thirty_pairs_and_they_show_every_effect() -> None:
    assert len(CASES) >= 30
    observed = {touched.rpartition(" ")[2] for case in CASES for touched in case.touches}
    assert observed == set(Effect)


def schema_lists() -> dict[str, dict[str, list[str]]]:
    """What replaces a resource, by CloudFormation's schemas as cfn-lint ships them."""
    actual = {}
    for kind in sorted(PROVIDER_SCHEMA_MANAGER.get_resource_types("us-east-1")):
        if not kind.startswith("AWS::"):
            continue
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
        lists = {
            "always": sorted(schema.get("createOnlyProperties", ())),
            "sometimes": sorted(schema.get("conditionalCreateOnlyProperties", ())),
        }
        row = {key: [path.removeprefix("/properties/") for path in paths] for key, paths in lists.items() if paths}
        names = [name for name in ("Name", f"{kind.rpartition('::')[2]}Name") if name in row.get("always", ())]
        made_first = schema.get("replacementStrategy") != "delete_then_create"
        if names and made_first and len(schema.get("primaryIdentifier", ())) == 1:
            row["name"] = names[:1]
        actual[kind] = row
    return actual


def used_types() -> set[str]:
    """Types of resources in the environments' templates."""
    snapshots = [json.loads(snapshot.read_text()) for snapshot in SNAPSHOTS.glob("*/*.json")]
    return {item["Type"] for template in snapshots for item in template["Resources"].values()}


def test_what_replaces_is_what_the_schemas_say(pytestconfig: pytest.Config) -> None:
    file, schemas = DATA / "create_only.json", schema_lists()
    if pytestconfig.getoption("update_snapshots"):
        rows = ",\n".join(f" {json.dumps(kind)}: {json.dumps(row)}" for kind, row in schemas.items())
        file.write_text(f"{{\n{rows}\n}}\n")
    ours = json.loads(file.read_text())
    assert [kind for kind in schemas.keys() | ours.keys() if schemas.get(kind) != ours.get(kind)] == []
    assert {kind for kind in used_types() if not kind.startswith("Custom::")} <= ours.keys()


def effect_rows() -> list[dict[str, str]]:
    with (DATA / "effects.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_our_custom_resources_have_rows() -> None:
    """No schema says what a change of them does: without a row it would be shown as unknown."""
    assert {kind for kind in used_types() if kind.startswith("Custom::Podwright")} <= {
        row["type"] for row in effect_rows()
    }


def test_every_row_of_the_effect_table_is_about_a_property_that_there_is() -> None:
    wrong = []
    for row in effect_rows():
        schema = schema_of(row["type"], "us-east-1")
        assert schema is not None, row["type"]
        path = row["path"].removesuffix("/**")
        if row["type"].startswith("AWS::") and path not in ("", "**"):
            way = schema.definition(path)
            # A map of free names, such as labels, has no schema for each.
            wrong += [] if way or "KubernetesConfig/Labels" in path else [f"{row['type']} {row['path']}"]
    assert wrong == []
    assert all(row["source"] for row in effect_rows())


def test_what_fsx_cannot_update_is_a_replacement() -> None:
    """CloudFormation's schema of file systems lists no nested property; the API's own parameters do."""
    client = boto3.client("fsx", region_name="us-west-2", aws_access_key_id="a", aws_secret_access_key="b")
    update = client.meta.service_model.operation_model("UpdateFileSystem").input_shape.members
    schema = schema_of("AWS::FSx::FileSystem", "us-east-1")
    assert schema is not None
    for name in ("LustreConfiguration", "OpenZFSConfiguration"):
        for key in schema.definition(name)["properties"]:
            actual = change_facts("AWS::FSx::FileSystem", f"{name}/{key}", "modify").effect
            if name == "OpenZFSConfiguration" and key == "Options":
                # Only says what to delete when the file system is deleted.
                continue
            assert (actual is Effect.REPLACES) == (key not in update[name].members), f"{name}/{key}: {actual}"


def test_what_nobody_knows_is_unknown() -> None:
    assert change_facts("AWS::New::Thing", "Size", "modify").effect is Effect.UNKNOWN
    assert change_facts("AWS::New::Thing", "", "delete").effect is Effect.UNKNOWN
    assert change_facts("AWS::SageMaker::Cluster", "InstanceGroups/*/NotYetThere", "modify").effect is Effect.UNKNOWN
    case = next(case for case in CASES if case.name == "instance type")
    assert "[UNKNOWN]" in text_of(lines(compared(reviewed("prod"), edited(case))))


def test_a_replacement_spreads_over_stacks_and_meets_what_cloudformation_refuses() -> None:
    new = reviewed("prod")
    at(new, "EksCluster")["RoleArn"] = "arn:aws:iam::111122223333:role/other"
    change_set = compared(reviewed("prod"), new)
    assert {"CHG001 eks/EksClusterB2BDED5B", "CHG001 cluster/ClusterEB0386A7"} <= asked(change_set)
    refused = {
        (change.logical_id, row.property.partition(".")[0])
        for change in change_set.changes
        for row in change.rows
        if row.effect is Effect.REFUSED
    }
    # The clusters keep their names, and the first one's export is in use.
    assert {("EksClusterB2BDED5B", "Outputs"), ("ClusterEB0386A7", "ClusterName")} <= refused


def test_an_export_that_goes_while_it_is_imported_is_refused() -> None:
    new = reviewed("prod")
    outputs = new["prod-storage"]["Outputs"]
    del outputs[next(name for name in outputs if "OutputRefLifecycleBucket" in name)]
    (change,) = compared(reviewed("prod"), new).changes
    assert change.effect is Effect.REFUSED
    assert "imported by cluster" in change.rows[0].known.what


@pytest.mark.parametrize(
    ("name", "kind"),
    [("Lustrelustre", "FileSystem"), ("CheckpointBucket", "Bucket"), ("LifecycleBucket", "Bucket"), ("Key", "Key")],
)
def test_deleting_what_holds_data_is_refused_unless_it_is_kept(name: str, kind: str) -> None:
    old, new = without_protection(reviewed("prod")), without_protection(reviewed("prod"))
    drop(name)(new)
    change_set = compared(old, new)
    assert harm(change_set) == {"CHG002"}
    retained = reviewed("prod")
    drop(name)(retained)
    assert harm(compared(reviewed("prod"), retained)) == set()
    assert {row["kept"] for row in data_at_risk(compared(reviewed("prod"), retained))} == {True}


@pytest.mark.parametrize("retained", [True, False])
def test_what_a_replacement_leaves_behind_is_kept_where_it_is_retained(retained: bool) -> None:
    old, new = (reviewed("prod") if retained else without_protection(reviewed("prod")) for _ in range(2))
    put("Lustrelustre/SubnetIds", ["subnet-0"])(new)
    change_set = compared(old, new)
    assert [row["kept"] for row in data_at_risk(change_set)] == [retained]
    words = "stays, outside the stack" if retained else "what it holds is deleted"
    assert words in next(need.why for need in change_set.approvals if need.id == "CHG001")


def test_a_change_has_one_digest() -> None:
    old, new = reviewed("prod"), reviewed("prod")
    put_group("h200", "InstanceCount", 8)(new)
    first = compared(old, new).digest
    assert compared(old, new).digest == first
    other = reviewed("prod")
    put_group("h200", "InstanceCount", 8)(other)
    for template in other.values():
        template["Resources"] = dict(reversed(template["Resources"].items()))
        template["Description"] = "another"
        for item in template["Resources"].values():
            item["Metadata"] = {"aws:cdk:path": "elsewhere"}
    assert compared(old, other).digest == first
    put_group("h200", "InstanceCount", 9)(other)
    assert compared(old, other).digest != first
    # The nodes that are lost are part of the change, although no template says how many run.
    assert compared(old, new, live={"h200": Group(20, False)}).digest != first
    assert compared(old, new, "other").digest != first


def test_harm_has_to_be_named_and_the_rest_approved() -> None:
    new = reviewed("prod")
    put_group("h200", "InstanceCount", 8)(new)
    put_group("h200", "ImageReleaseVersion", "1.2.3")(new)
    change_set = compared(reviewed("prod"), new)
    assert [need.id for need in change_set.approvals] == ["CHG004", "CHG005"]

    def states(*approved: ApprovedChange, allowed: tuple[str, ...] = ()) -> list[bool]:
        return [need.approved for need in answered(change_set.approvals, change_set.digest, approved, allowed)]

    assert states() == [False, False]
    assert states(ApprovedChange(digest="0" * 32, names=("h200",))) == [False, False]
    assert states(ApprovedChange(digest=change_set.digest)) == [False, True]
    assert states(ApprovedChange(digest=change_set.digest, names=("burst",))) == [False, True]
    assert states(ApprovedChange(digest=change_set.digest, names=("h200",))) == [True, True]
    assert states(allowed=("h200",)) == [True, False]
    with pytest.raises(CommandError, match="CHG004  h200: the deployment would set h200 16 → 8") as refused:
        stop_unapproved("prod", change_set.approvals, change_set.digest)
    assert "podwright deploy prod --allow h200" in refused.value.hint
    assert f"- digest: {change_set.digest}\n    names: [h200]" in refused.value.hint
    stop_unapproved("prod", answered(change_set.approvals, change_set.digest, (), ("h200",)), change_set.digest)
    assert "names: [h200]" in entry(change_set.approvals, change_set.digest)


def describe(target: int, *, karpenter: bool = False) -> Cluster:
    scaling = {"AutoScaling": {"Mode": "Enable", "AutoScalerType": "Karpenter"}} if karpenter else {}
    rows = [("h200", target), ("burst", 4), ("system", 2), ("by-hand", 3)]
    # Of the nodes that should be there one is being replaced, which is no smaller group.
    groups = [{"InstanceGroupName": name, "CurrentCount": count - 1, "TargetCount": count} for name, count in rows]
    restricted = [{"InstanceGroupName": "nova", "CurrentCount": 2, "TargetCount": 2}]
    existing = {"ClusterStatus": "InService", "InstanceGroups": groups, "RestrictedInstanceGroups": restricted}
    return Cluster.of({**existing, **scaling})


def test_a_group_that_was_enlarged_shrinks_with_whatever_touches_the_cluster() -> None:
    new = reviewed("prod")
    put_group("system", "KubernetesConfig", {"Labels": {"a": "b"}})(new)
    live = groups_of(describe(20))
    change_set = compared(reviewed("prod"), new, live=live)
    assert [str(decrease) for decrease in change_set.falls] == ["h200 20 → 16"]
    assert asked(change_set) == {"CHG004 h200"}
    assert compared(reviewed("prod"), reviewed("prod"), live=live).falls == []
    assert compared(reviewed("prod"), new, live=groups_of(describe(16))).falls == []
    assert compared(reviewed("prod"), new, live=groups_of(describe(12))).falls == []


@pytest.mark.parametrize("touched", [True, False])
def test_the_account_is_asked_for_nodes_only_when_the_cluster_is_touched(
    touched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment, asked_for = Project.at(ROOT).load("prod").environment, list[str]()

    def live(_: Any, cluster: str) -> dict[str, Group]:
        asked_for.append(cluster)
        return groups_of(describe(20))

    monkeypatch.setattr(effects_document, "live_groups", live)
    new = reviewed("prod")
    if touched:
        put_group("system", "KubernetesConfig", {"Labels": {"a": "b"}})(new)
    else:
        put("NetworkVpc/Tags", [])(new)
    account: Any = SimpleNamespace(id="111122223333", region="us-west-2")
    change_set = effects_document.compared(environment, account, pairs(reviewed("prod"), new))
    assert [str(decrease) for decrease in change_set.falls] == ["h200 20 → 16"] * touched
    assert asked_for == [environment.cluster.name] * touched


def test_published_scripts_touch_the_cluster_too() -> None:
    new = reviewed("prod")
    put("Lifecycle/AssetKey", "other.zip")(new)
    assert asked(compared(reviewed("prod"), new, live=groups_of(describe(20)))) == {"CHG004 h200"}


def test_karpenter_may_lower_its_groups_but_not_lose_them() -> None:
    live = groups_of(describe(20, karpenter=True))
    assert [name for name, group in live.items() if not group.scaled] == ["nova"]
    new = reviewed("prod")
    put_group("h200", "InstanceCount", 0)(new)
    assert compared(reviewed("prod"), new, live=live).falls == []
    groups = at(new, "Cluster/InstanceGroups")
    groups.remove(at(new, "Cluster/InstanceGroups/h200"))
    assert [(decrease.group, decrease.removed) for decrease in compared(reviewed("prod"), new, live=live).falls] == [
        ("h200", True)
    ]
    # Without a cluster that runs, the template says who scales.
    old = reviewed("prod")
    put("Cluster/AutoScaling", {"Mode": "Enable"})(old)
    new = reviewed("prod")
    put("Cluster/AutoScaling", {"Mode": "Enable"})(new)
    put_group("h200", "InstanceCount", 0)(new)
    assert compared(old, new).falls == []


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_templates_cost_what_the_file_costs(name: str) -> None:
    """Two ways to one sum: from the file, and from what is synthesized from it."""
    environment = Project.at(ROOT).load(name).environment
    prices = {**environment.prices, **paid_by_group(environment)}
    actual = [
        item
        for template in reviewed(name).values()
        for item in items(template, environment.region, prices, hours_by_group(environment))
        # The file counts the environment's own key; alerts bring one of theirs.
        if item.name != "kms_key"
    ]
    counted = [item for item in costs_of_file(environment, date(2026, 11, 22)) if item.name != "kms_key"]
    assert sum(item.monthly or 0 for item in actual) == pytest.approx(total(counted).monthly, abs=0.01)
    assert sum(item.quantity for item in actual) == pytest.approx(sum(item.quantity for item in counted))


def test_permissions_show_what_opens_to_everybody() -> None:
    new = reviewed("prod")
    statement = {"Action": "*", "Effect": "Allow", "Resource": "*"}
    at(new, "RunnerRoleDefaultPolicy/PolicyDocument/Statement").append(statement)
    at(new, "LustrelustreFromClientsingressall").update(SourceSecurityGroupId=None, CidrIp="0.0.0.0/0")
    del at(new, "LustrelustreFromClientsingressall")["SourceSecurityGroupId"]
    rows = document(compared(reviewed("prod"), new))["permissions"]
    opened = [(row["resource"].partition("/")[0], row["what"]) for row in rows if row["wide"] and row["sign"] == "+"]
    assert opened == [("storage", "all 0.0.0.0/0"), ("eks", "* on *")]
    assert "open to everything" in text_of(lines(compared(reviewed("prod"), new)))


def test_people_read_the_names_of_kubernetes_objects_and_no_text_of_a_whole_one() -> None:
    def template(*items: dict[str, Any]) -> Templates:
        properties = {
            "Manifest": json.dumps([{"apiVersion": "v1", "metadata": {"name": "one"}, **item} for item in items])
        }
        return {"prod-governance": {"Resources": {"Objects": {"Type": APPLIED, "Properties": properties}}}}

    old = template({"kind": "ClusterQueue", "spec": {}}, {"kind": "ConfigMap"})
    new = template({"kind": "ClusterQueue", "spec": {"cohortName": "all"}}, {"kind": "Secret"})
    text = text_of(lines(compared(old, new)))
    assert "      ClusterQueue[one].spec.cohortName: + all  [in place]" in text
    assert "      ConfigMap[one]: left out  [in place]" in text
    assert "      Secret[one]: added  [in place]" in text


def test_an_assembly_is_read_in_the_order_of_deployment(tmp_path: Path) -> None:
    inner = tmp_path / "assembly-prod"
    inner.mkdir()
    nested = {"Resources": {"Quota": {"Type": "AWS::SageMaker::ComputeQuota", "Properties": {"Name": "a"}}}}
    digest = "0" * 63 + "1"
    url = {"Fn::Join": ["", ["https://bucket/", f"{digest}.json"]]}
    holder = {"Resources": {"Teams": {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": url}}}}
    files = {"teams.json": nested, "governance.json": holder, "network.json": {"Resources": {}}}
    for name, body in files.items():
        (inner / name).write_text(json.dumps(body))
    (inner / "g.assets.json").write_text(json.dumps({"files": {digest: {"source": {"path": "teams.json"}}}}))
    stacks = {
        "a": {"properties": {"templateFile": "governance.json", "stackName": "prod-governance"}, "dependencies": ["b"]},
        "b": {"properties": {"templateFile": "network.json", "stackName": "prod-network"}},
    }
    artifacts = {key: {"type": "aws:cloudformation:stack", **item} for key, item in stacks.items()}
    (inner / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    templates = synthesized(tmp_path, "prod")
    assert list(templates) == ["prod-network", "prod-governance", "prod-governance/Teams"]
    assert synthesized(inner, "prod") == templates
    # A nested stack that its parent loses goes with all that it holds.
    deleted = {"prod-network": templates["prod-network"], "prod-governance": {"Resources": {}}}
    left = compared(templates, deleted)
    assert {change.name for change in left.changes} == {"governance/Teams", "governance/Teams/Quota"}
    with pytest.raises(CommandError, match="holds no cloud assembly of prod"):
        synthesized(tmp_path / "nothing", "prod")


def test_every_reason_can_be_explained_and_every_stateful_type_is_known() -> None:
    provided = {need.partition(" ")[0] for case in CASES for need in case.needs} | {"CHG002"}
    assert provided == set(reasons())
    types = json.loads((DATA / "create_only.json").read_text())
    assert stateful().keys() <= types.keys()


def test_the_document_says_what_people_read() -> None:
    case = next(case for case in CASES if case.name == "image release")
    change_set = compared(reviewed("prod"), edited(case))
    plain = json.loads(json.dumps(document(change_set)))
    assert plain["schema"] == "podwright.diff/1"
    (stack,) = plain["stacks"]
    (change,) = stack["changes"]
    assert (change["action"], change["property"], change["effect"], change["stateful"]) == (
        "update",
        "InstanceGroups[h200].ImageReleaseVersion",
        "rolls_nodes",
        True,
    )
    assert plain["nodes_restarted"][0]["nodes"] == 16
    assert plain["duration"]["minutes"] == [30, 60]
    approval = plain["approval"]
    assert (approval["needed"], approval["given"], approval["refused"]) == (True, False, False)
    assert resource(reviewed("prod"), "Cluster")["Type"] == change["type"]
    shown = text_of(lines(change_set))
    assert "InstanceGroups[h200].ImageReleaseVersion: + 1.2.3  [rolls nodes, 30 to 60 min]" in shown
    assert f"digest: {change_set.digest}" in shown


def resource_change(stack: str, id: str, *facts: ChangeFacts, kind: str = "AWS::X::Y") -> ResourceChange:
    rows = [Row(id, id, "modify", 1, 2, fact) for fact in facts]
    return ResourceChange("prod", stack, id, kind, "", "update", rows)


def lasts(*made: ResourceChange) -> dict[str, Any]:
    return duration(replace(compared({}, {}), changes=list(made)))


def test_within_a_stack_the_longest_counts_and_stacks_come_one_after_the_other() -> None:
    short, long, other = (ChangeFacts(Effect.ROLLS_NODES, minutes) for minutes in ((5, 10), (20, 40), (1, 2)))
    made = (resource_change("prod-a", "A", short), resource_change("prod-a/Nested", "B", long))
    assert lasts(*made, resource_change("prod-b", "C", other)) == {"minutes": [21, 42], "unknown": []}


def test_what_holds_data_and_takes_time_that_nobody_published_is_named() -> None:
    unknown, in_place, stateful_type = ChangeFacts(Effect.UNKNOWN), ChangeFacts(Effect.IN_PLACE), "AWS::FSx::FileSystem"
    made = (
        resource_change("prod-a", "Lake", unknown, kind=stateful_type),
        resource_change("prod-a", "Tagged", in_place, kind=stateful_type),
        resource_change("prod-a", "Topic", unknown),
    )
    assert lasts(*made)["unknown"] == ["a/Lake"]


def test_rules_from_groups_and_rules_outward_open_nothing_to_everybody() -> None:
    new = reviewed("prod")
    at(new, "LustrelustreFromClientsingressall").update(SourceSecurityGroupId="sg-other")
    rows = document(compared(reviewed("prod"), new))["permissions"]
    assert [(row["sign"], row["wide"]) for row in rows] == [("+", False), ("-", False)]


def test_one_property_that_replaces_makes_a_replacement_and_is_named_as_the_reason() -> None:
    new = reviewed("prod")
    put("Lustrelustre/SubnetIds", ["subnet-0"])(new)
    put("Lustrelustre/LustreConfiguration/WeeklyMaintenanceStartTime", "1:01:00")(new)
    change_set = compared(reviewed("prod"), new)
    change = next(change for change in change_set.changes if change.type == "AWS::FSx::FileSystem")
    assert change.action == "replace"
    (why,) = (need.why for need in change_set.approvals if (need.id, need.name) == ("CHG001", change.name))
    assert "SubnetIds[subnet-0])" in why
    assert "WeeklyMaintenanceStartTime" not in why


def test_the_last_node_of_a_group_that_goes_is_told() -> None:
    old, new = reviewed("prod"), reviewed("prod")
    put_group("burst", "InstanceCount", 1)(old)
    at(new, "Cluster/InstanceGroups").remove(at(new, "Cluster/InstanceGroups/burst"))
    (decrease,) = compared(old, new).falls
    assert (str(decrease), decrease.removed) == ("burst 1 → 0", True)


def test_a_type_without_a_price_is_named_and_the_sum_is_a_lower_bound() -> None:
    new = reviewed("prod")
    put_group("system", "InstanceType", "ml.never-sold.48xlarge")(new)
    priced = compared(reviewed("prod"), new).costs
    assert priced.unknown == ("system: ml.never-sold.48xlarge",)
    assert priced.at_least


def test_a_nested_stack_without_its_parent_is_left_alone() -> None:
    both = pairs({"gone": {}, "gone/Teams": {}, "kept/Teams": {}}, {"kept": {}})
    assert {pair.name: pair.new for pair in both} == {"kept": {}, "gone": None, "gone/Teams": None, "kept/Teams": {}}


def test_another_order_is_a_change_where_items_have_no_names() -> None:
    (change,) = differences({"types": ["a", "b"]}, {"types": ["b", "a"]})
    assert (change.path, change.change) == ("types", "modify")
    named = [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]
    assert list(differences({"Tags": named}, {"Tags": named[::-1]})) == []


def test_effects_have_their_colours_and_constructs_their_words() -> None:
    """What replaces is red, what adds is green; a construct goes by its path, without the digest of its id."""
    cases = {case.name: case for case in CASES}
    with screen(120) as terminal:
        for name in ("team renamed", "new group"):
            case = cases[name]
            for block in lines(compared(reviewed(case.environment), edited(case))):
                write_line(block)
    shown = terminal.getvalue()
    assert "\x1b[1;31m!\x1b[0m" in shown
    assert shown.count("\x1b[1;31mREPLACES\x1b[0m") == 2
    assert "\x1b[32madds nodes\x1b[0m" in shown
    assert "! Quotas Quota-research  AWS::SageMaker::ComputeQuota  REPLACES" in terminal.seen()[3]
    assert not any("8CBB98FD" in line for line in terminal.seen()[:5])


@pytest.mark.parametrize("at", [0, 30, 499])
def test_of_long_values_the_part_that_differs_is_shown(at: int) -> None:
    same = "".join(f"{number:03}," for number in range(125))
    before, after = _differing(f"{same[:at]}old{same[at:]}", f"{same[:at]}young{same[at:]}")
    assert "old" in before
    assert "young" in after
    assert max(len(before), len(after)) <= 48
    assert [text.startswith("…") for text in (before, after)] == [at > 8] * 2
    assert [text.endswith("…") for text in (before, after)] == [at < 490] * 2
    assert _differing("16", "20") == ["16", "20"]
