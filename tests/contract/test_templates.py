"""What holds for every template of every environment."""

import json
import re
from collections.abc import Iterator, Mapping
from operator import gt
from typing import Any

from podwright.config.catalog.charts import HYPERPOD_DEPENDENCIES
from podwright.config.catalog.limits import limits
from podwright.sandbox.authorization.evaluation import listed
from podwright.sandbox.cloudformation.evaluate import references
from synthesis import NAMES, Template, environment, synthesis

# CloudFormation quotas, user guide, 2026-11.
MAX_RESOURCES, MAX_BYTES, MAX_OUTPUTS = 500, 1_000_000, 200

# Every Lambda runtime and custom resource type that an environment may bring. A new one needs a decision record.
PYTHON = re.compile(r"^python3\.1[3-9]$")
CUSTOM_TYPES = {
    # Objects of teams, and barriers between them; neither runs anything.
    "AWS::CloudFormation::Stack",
    "AWS::CloudFormation::WaitConditionHandle",
    "Custom::PodwrightClusterExtension",
    "Custom::PodwrightComputeQuota",
    "Custom::PodwrightDeploymentReady",
    "Custom::PodwrightGrafanaContent",
    "Custom::PodwrightLifecycle",
    "Custom::PodwrightNamespacesReady",
    "Custom::PodwrightNodesReady",
    "Custom::PodwrightSchedulerConfig",
    "Custom::PodwrightServiceLogs",
    "Custom::PodwrightTrainingPlan",
    "Custom::AWSCDK-EKS-HelmChart",
    "Custom::AWSCDK-EKS-KubernetesResource",
}


def statements(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """All IAM policy statements of identities, with the resource that holds them."""
    for stack, template in synthesis(name).templates.items():
        for logical_id, resource in template["Resources"].items():
            properties = resource.get("Properties", {})
            documents = [properties.get("PolicyDocument")] + [
                policy["PolicyDocument"] for policy in properties.get("Policies", []) if isinstance(policy, dict)
            ]
            if resource["Type"] in ("AWS::IAM::Policy", "AWS::IAM::Role", "AWS::IAM::ManagedPolicy"):
                for document in filter(None, documents):
                    for statement in document["Statement"]:
                        yield f"{stack}/{logical_id}", statement


def templates() -> Iterator[tuple[str, Template]]:
    """Each template of every environment, with `environment/stack`."""
    for name in NAMES:
        for stack, template in synthesis(name).templates.items():
            yield f"{name}/{stack}", template


def test_templates_fit_the_limits_of_cloudformation() -> None:
    sizes = {
        where: (len(template["Resources"]), len(template.get("Outputs", {})), len(json.dumps(template)))
        for where, template in templates()
    }
    limits_of_a_stack = (MAX_RESOURCES, MAX_OUTPUTS, MAX_BYTES)
    assert len(sizes) > len(NAMES)
    assert {where: size for where, size in sizes.items() if any(map(gt, size, limits_of_a_stack))} == {}


def test_everything_is_decided_at_synthesis() -> None:
    left = {
        where: parts
        for where, template in templates()
        if (
            parts := {*template.get("Parameters", {})} - {"BootstrapVersion"} | {"Conditions", "Mappings"} & {*template}
        )
    }
    assert left == {}


def test_no_policy_allows_every_action() -> None:
    wide = [
        f"{name}/{holder}: {action}"
        for name in NAMES
        for holder, statement in statements(name)
        for action in listed(statement["Action"])
        if action == "*" or action.endswith(":*")
    ]
    assert not wide, "\n".join(wide)


def is_known_function(address: str, function: Mapping[str, Any]) -> bool:
    """Whether a function runs Python, or is the one Node function: the framework around CDK's kubectl handler."""
    framework = "KubectlProvider" in address and "framework" in function["Properties"].get("Description", "")
    return framework or bool(PYTHON.match(function["Properties"]["Runtime"]))


def test_only_known_functions_and_custom_resources() -> None:
    unknown = [
        f"{where}: {resource['Type']}"
        for where, template in templates()
        for resource in template["Resources"].values()
        if resource["Type"].startswith(("Custom::", "AWS::CloudForm")) and resource["Type"] not in CUSTOM_TYPES
    ]
    unknown += [
        f"{name}/{address}"
        for name in NAMES
        for address, function in synthesis(name).resources("AWS::Lambda::Function").items()
        if not is_known_function(address, function)
    ]
    assert not unknown, "\n".join(unknown)


def test_protection_decides_what_survives() -> None:
    wrong, judged = [], 0
    for name in NAMES:
        destroyed = environment(name).protection == "destroy"
        # What a failed first deployment has made goes again, or its names would block the next one.
        policies = ("Delete", "Delete") if destroyed else ("RetainExceptOnCreate", "Retain")
        for resource_type in ("AWS::FSx::FileSystem", "AWS::S3::Bucket", "AWS::KMS::Key"):
            for address, resource in synthesis(name).resources(resource_type).items():
                judged += 1
                if (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) != policies:
                    wrong.append(f"{name}/{address}: {resource['DeletionPolicy']}, {resource['UpdateReplacePolicy']}")
    assert not wrong, "\n".join(wrong)
    assert judged


def test_hyperpod_finds_its_dependencies_chart() -> None:
    """HyperPod refuses a cluster without it, and stacks without a dependency are deployed side by side."""
    late, judged = [], 0
    for name in NAMES:
        resolved = synthesis(name)
        charts = resolved.resources("Custom::AWSCDK-EKS-HelmChart")
        needed = {
            address.partition("/")[0]
            for address, chart in charts.items()
            if chart["Properties"]["Release"] == HYPERPOD_DEPENDENCIES
        }
        judged += len(needed)
        for address in resolved.resources("AWS::SageMaker::Cluster"):
            if not needed <= resolved.earlier_stacks(address.partition("/")[0]):
                late.append(f"{name}/{address}: {needed}")
    assert not late, "\n".join(late)
    assert judged


# They name a principal, whose policies they neither use nor wait for.
PRINCIPALS_ONLY = ("AWS::EKS::AccessEntry",)


def made_before(resources: Mapping[str, Mapping[str, Any]], logical_id: str) -> set[str]:
    """Every resource that CloudFormation has made, and not yet deleted, whenever this one exists."""
    before, open_ids = set[str](), [logical_id]
    while open_ids:
        resource = resources[open_ids.pop()]
        direct = references(resource.get("Properties", {})) | set(resource.get("DependsOn", ()))
        new = (direct & resources.keys()) - before
        before |= new
        open_ids += new
    return before


def policies_of(template: Mapping[str, Any]) -> dict[str, set[str]]:
    """Policies that are resources of their own, by the role that they are of."""
    policies: dict[str, set[str]] = {}
    for logical_id, resource in template["Resources"].items():
        roles = [resource["Properties"].get(field) for field in ("Roles", "RoleName") if "IAM" in resource["Type"]]
        for role in references(roles):
            policies.setdefault(role, set()).add(logical_id)
    return policies


def test_what_has_a_role_has_its_policies_from_beginning_to_end() -> None:
    """Otherwise it may be made before its role may do anything, and outlive what its role needs to clean up."""
    missing = []
    for where, template in templates():
        policies = policies_of(template)
        for logical_id, resource in template["Resources"].items():
            if resource["Type"].startswith("AWS::IAM::") or resource["Type"] in PRINCIPALS_ONLY:
                continue
            roles = references(resource.get("Properties", {})) & set(policies)
            before = made_before(template["Resources"], logical_id) if roles else set()
            # A policy about the resource itself can only come after it.
            late = {
                policy
                for role in roles
                for policy in policies[role] - before
                if logical_id not in made_before(template["Resources"], policy)
            }
            missing += [f"{where}/{logical_id}: {policy}" for policy in sorted(late)]
    assert not missing, "\n".join(missing)


RULES = ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")
# What CloudFormation keeps apart from the resource that it is about, and the property that names that.
ABOUT = {
    **dict.fromkeys(RULES, "GroupId"),
    "AWS::S3::BucketPolicy": "Bucket",
    "AWS::EC2::Route": "RouteTableId",
    "AWS::EC2::SubnetRouteTableAssociation": "SubnetId",
}
# They have addresses in a subnet and call nobody, or only say what may be done with a bucket.
CALL_NOBODY = ("AWS::EC2::VPCEndpoint", "AWS::IAM::Policy", "AWS::IAM::Role", "AWS::EC2::SecurityGroup")


def values_in(properties: object) -> Iterator[str]:
    """Each value within properties, as text that is the same for the same value."""
    yield json.dumps(properties, sort_keys=True)
    if isinstance(properties, Mapping):
        properties = list(properties.values())
    if isinstance(properties, list):
        for item in properties:
            yield from values_in(item)


def terms_of(resources: Mapping[str, Mapping[str, Any]]) -> dict[str, set[str]]:
    """The rules, policies, routes and associations about each thing, by the value with which templates name it."""
    terms: dict[str, set[str]] = {}
    for logical_id, resource in resources.items():
        if resource["Type"] in ABOUT:
            about = resource["Properties"][ABOUT[resource["Type"]]]
            terms.setdefault(json.dumps(about, sort_keys=True), set()).add(logical_id)
    return terms


def with_routes(resources: Mapping[str, Mapping[str, Any]], terms: dict[str, set[str]]) -> dict[str, set[str]]:
    """The same, where a subnet has the routes of its route table too."""
    reached = {value: set(names) for value, names in terms.items()}
    for names in reached.values():
        for name in list(names):
            table = resources[name]["Properties"].get("RouteTableId")
            if resources[name]["Type"] == "AWS::EC2::SubnetRouteTableAssociation":
                names |= terms.get(json.dumps(table, sort_keys=True), set())
    return reached


def test_what_is_in_a_security_group_or_writes_to_a_bucket_has_its_rules() -> None:
    """Rules, policies and routes are resources of their own, which nothing that uses them names.

    FSx and RDS look at their security group when they are made; a database whose rule goes first is cut off from what
    still writes to it.
    """
    late = []
    for where, template in templates():
        resources = template["Resources"]
        terms = with_routes(resources, terms_of(resources))
        for logical_id, resource in resources.items():
            if resource["Type"] in (*ABOUT, *CALL_NOBODY):
                continue
            used = terms.keys() & set(values_in(resource.get("Properties", {})))
            needed = {term for value in used for term in terms[value]}
            missing = needed - made_before(resources, logical_id) if needed else set()
            # A rule about the resource itself can only come after it.
            late += [
                f"{where}/{logical_id} ({resource['Type']}): {term}"
                for term in sorted(missing)
                if logical_id not in made_before(resources, term)
            ]
    assert not late, "\n".join(late)


MANIFEST, WAIT = "Custom::AWSCDK-EKS-KubernetesResource", "Custom::PodwrightNamespacesReady"


def objects_of(resource: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The Kubernetes objects of a manifest; values that only a deployment knows are `?` in it."""
    manifest = resource["Properties"]["Manifest"]
    if isinstance(manifest, dict):
        manifest = "".join(part if isinstance(part, str) else "?" for part in manifest["Fn::Join"][1])
    return json.loads(manifest)


def late_objects(name: str) -> Iterator[str]:
    """Objects of an environment in a namespace that SageMaker makes, which do not wait for it."""
    actual, prefix = synthesis(name), limits().compute_quota.namespace_prefix
    for stack in actual.templates:
        if stack.endswith(".nested.template.json"):
            continue
        resources = actual.whole(stack)
        waits = {key: set(item["Properties"]["Namespaces"]) for key, item in resources.items() if item["Type"] == WAIT}
        for logical_id, resource in resources.items():
            objects = objects_of(resource) if resource["Type"] == MANIFEST else []
            namespaces = {item["metadata"].get("namespace", "") for item in objects}
            needed = {item for item in namespaces if item.startswith(prefix)}
            before = made_before(resources, logical_id) if needed else set()
            awaited = {item for wait in before & waits.keys() for item in waits[wait]}
            yield from (f"{name}/{stack}/{logical_id}: {item}" for item in sorted(needed - awaited))


def test_objects_in_namespaces_that_sagemaker_makes_wait_for_them() -> None:
    """The service makes `hyperpod-ns-TEAM` after it has answered that the quota is there."""
    late = [line for name in NAMES for line in late_objects(name)]
    assert not late, "\n".join(late)


def test_a_wait_for_namespaces_begins_anew_with_a_quota_that_is_made_anew() -> None:
    """After a roll-back the quota is another one, and its namespace not yet the one that was waited for."""
    resources = synthesis("dev").whole("governance")
    quotas = {key for key, item in resources.items() if item["Type"] == "AWS::SageMaker::ComputeQuota"}
    made_by = [item["Properties"]["MadeBy"] for item in resources.values() if item["Type"] == WAIT]
    assert quotas
    assert [quotas - {reference["Ref"] for reference in references} for references in made_by] == [set()]


def test_some_environment_has_objects_in_namespaces_that_sagemaker_makes() -> None:
    """Without one, the test before this one would be about nothing."""
    assert [name for name in NAMES if synthesis(name).resources(WAIT)]
