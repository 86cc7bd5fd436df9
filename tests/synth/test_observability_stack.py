"""What collects metrics: workspace, add-on or extension, the function that measures, and logs that are kept."""

import json
from typing import Any

from podwright.config.catalog.names import benchmark_prefix
from synthesis import Synthesis, Template, environment, environment_of, synthesis, synthesize

CLOSED = """
name: closed
account: "111122223333"
region: us-west-2
network: {cidr: 10.16.0.0/16, zones: [usw2-az2, usw2-az3], endpoints: closed}
cluster: {zones: [usw2-az2, usw2-az3]}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
restricted_instance_groups:
  nova: {instance_type: ml.p5.48xlarge, count: 1, zone: usw2-az2}
observability:
  metrics: basic
  levels: {network: advanced, inference: "off"}
  scrape_seconds: 60
  retention_days: 400
  container_logs: true
  log_queries_above_samples: 1000000
  series_limits: [{labels: {namespace: hyperpod-ns-research, job: dcgm}, max_series: 500000}]
"""


def of_type(template: Template, resource_type: str) -> list[dict[str, Any]]:
    """Properties of the resources of a type in one template."""
    return [item["Properties"] for item in template["Resources"].values() if item["Type"] == resource_type]


def one(actual: Synthesis, resource_type: str) -> dict[str, Any]:
    """Properties of the only resource of a type in the stack of observability."""
    [properties] = of_type(actual.templates["observability"], resource_type)
    return properties


def text(value: Any) -> str:
    """A joined text, with the logical ids or exports that it refers to."""
    match value:
        case {"Fn::Join": ["", parts]}:
            return "".join(map(text, parts))
        case {"Fn::ImportValue": name} | {"Ref": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"<{name}.{attribute}>"
    return str(value)


def permissions(actual: Synthesis, action: str) -> list[dict[str, Any]]:
    """Statements of the stack of observability that allow an action."""
    policies = of_type(actual.templates["observability"], "AWS::IAM::Policy")
    statements = [statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]]
    return [item for item in statements if action in (item["Action"], *item["Action"])]


def test_the_workspace_keeps_what_the_file_says_and_survives_its_stack() -> None:
    closed = synthesize(environment_of(CLOSED, "closed"))
    workspace = one(closed, "AWS::APS::Workspace")
    assert workspace["WorkspaceConfiguration"] == {
        "RetentionPeriodInDays": 400,
        "LimitsPerLabelSets": [
            {
                "LabelSet": [{"Name": "job", "Value": "dcgm"}, {"Name": "namespace", "Value": "hyperpod-ns-research"}],
                "Limits": {"MaxSeries": 500000},
            }
        ],
    }
    assert "Key" in text(workspace["KmsKeyArn"])
    [destination] = workspace["QueryLoggingConfiguration"]["Destinations"]
    assert destination["Filters"] == {"QspThreshold": 1000000}
    assert destination["CloudWatchLogs"] == workspace["LoggingConfiguration"]
    for name, resource in closed.resources("AWS::APS::Workspace").items():
        assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain"), name
    _collector_has_the_levels_of_the_file(closed)
    _restricted_nodes_write_with_their_own_role(closed)
    _a_closed_network_reaches_the_workspace(closed)


def _collector_has_the_levels_of_the_file(closed: Synthesis) -> None:
    addon = one(closed, "AWS::EKS::Addon")
    assert (addon["AddonName"], addon["AddonVersion"]) == (
        "amazon-sagemaker-hyperpod-observability",
        "v1.0.5-eksbuild.1",
    )
    configuration = json.loads(text(addon["ConfigurationValues"]))
    levels = {key: value["level"] for key, value in configuration["metricsProvider"].items()}
    assert levels == {
        "trainingMetrics": "BASIC",
        "inferenceMetrics": "DISABLED",
        "taskGovernanceMetrics": "ADVANCED",
        "scalingMetrics": "DISABLED",
        "customMetrics": "BASIC",
        "nodeMetrics": "BASIC",
        "acceleratedComputeMetrics": "BASIC",
        "networkMetrics": "ADVANCED",
    }
    assert {value["scrapeInterval"] for value in configuration["metricsProvider"].values()} == {60}
    assert configuration["logging"] == {"enabled": True}
    endpoint = configuration["ampWorkspace"]["prometheusEndpoint"]
    assert endpoint.startswith("https://aps-workspaces.us-west-2.")
    assert not endpoint.endswith("/")
    written = [item for logs in permissions(closed, "logs:PutLogEvents") for item in _listed(logs["Resource"])]
    assert any("/aws/sagemaker/Clusters/closed/*" in text(item) for item in written)


def _restricted_nodes_write_with_their_own_role(closed: Synthesis) -> None:
    policies = closed.templates["observability"]["Resources"]
    [policy] = [item for name, item in policies.items() if name.startswith("NodesWriteMetrics")]
    [statement] = policy["Properties"]["PolicyDocument"]["Statement"]
    assert (statement["Action"], text(statement["Resource"])[:8]) == ("aps:RemoteWrite", "<Metrics")
    [role] = policy["Properties"]["Roles"]
    assert "ExecutionRole" in text(role)


def _a_closed_network_reaches_the_workspace(closed: Synthesis) -> None:
    names = {text(item["ServiceName"]) for item in of_type(closed.templates["network"], "AWS::EC2::VPCEndpoint")}
    assert "com.amazonaws.us-west-2.aps-workspaces" in names


def test_the_role_of_the_collector_is_there_before_it() -> None:
    resources = synthesis("prod").templates["observability"]["Resources"]
    [identity] = [name for name, item in resources.items() if item["Type"] == "AWS::EKS::PodIdentityAssociation"]
    [addon] = [item for item in resources.values() if item["Type"] == "AWS::EKS::Addon"]
    assert identity in addon["DependsOn"]
    properties = resources[identity]["Properties"]
    assert (properties["Namespace"], properties["ServiceAccount"]) == (
        "hyperpod-observability",
        "hyperpod-observability-operator-otel-collector",
    )
    assert not any("NodesWriteMetrics" in name for name in resources)


def test_the_cluster_is_measured_every_minute_from_where_its_api_is() -> None:
    prod = synthesis("prod")
    [rule] = [
        item for item in of_type(prod.templates["observability"], "AWS::Events::Rule") if "ScheduleExpression" in item
    ]
    assert rule["ScheduleExpression"] == "rate(1 minute)"
    [target] = rule["Targets"]
    assert target["RetryPolicy"]["MaximumRetryAttempts"] == 0
    facts = json.loads(text(target["Input"]))
    settings = environment("prod")
    assert facts["cluster"] == settings.cluster.name
    assert facts["continuous"] is True
    assert facts["budget"] == settings.observability.budget_usd_per_month  # type: ignore[union-attr]
    assert facts["plans"].keys() == settings.training_plans.keys()
    assert facts["results"][1] == benchmark_prefix("prod")
    assert facts["endpoint"].startswith("<Metrics")
    [observed] = permissions(prod, "sagemaker:ListClusterNodes")
    assert "*" not in text(observed["Resource"])
    [results] = [item for item in permissions(prod, "s3:ListBucket") if "results" in str(item.get("Condition"))]
    assert results["Condition"] == {"StringLike": {"s3:prefix": [f"{benchmark_prefix('prod')}/results/*"]}}
    measured = [
        item for item in of_type(prod.templates["observability"], "AWS::Lambda::Function") if item["Timeout"] == 55
    ]
    assert [item["VpcConfig"]["SubnetIds"] != [] for item in measured] == [True]
    entries = of_type(prod.templates["observability"], "AWS::EKS::AccessEntry")
    assert [item["KubernetesGroups"] for item in entries] == [["podwright:node-readers"], ["podwright:node-markers"]]


def _rule(template: Template) -> dict[str, Any] | None:
    """When a node that fails again and again is taken out of work, as the function that hears of faults has it."""
    variables = [
        item.get("Environment", {}).get("Variables", {}) for item in of_type(template, "AWS::Lambda::Function")
    ]
    [notices] = [item for item in variables if "MAIL_TOPIC" in item]
    return json.loads(text(notices["QUARANTINE"])) if "QUARANTINE" in notices else None


def test_a_node_that_fails_again_and_again_is_marked_from_the_vpc_and_written_down() -> None:
    prod = synthesis("prod")
    rule = _rule(prod.templates["observability"])
    assert rule is not None
    assert (rule["faults"], rule["within_hours"], rule["prefix"]) == (3, 24, "prod/quarantine")
    [called] = permissions(prod, "lambda:InvokeFunction")
    assert text(called["Resource"]).startswith("<QuarantineMark")
    assert rule["marker"].startswith("<QuarantineMark")
    [written] = permissions(prod, "s3:PutObject")
    assert text(written["Resource"]).endswith("/prod/quarantine/*")
    assert written["Action"] == ["s3:GetObject", "s3:PutObject"]
    assert "podwright-node-markers" in json.dumps(prod.templates["eks"])


def test_with_slurm_nothing_marks_nodes_and_off_is_off() -> None:
    slurm = synthesis("slurm-classic")
    rule = _rule(slurm.templates["observability"])
    assert rule is not None
    assert rule["marker"] == ""
    assert permissions(slurm, "lambda:InvokeFunction") == []
    prod = environment("prod")
    assert prod.observability is not None
    settings = prod.observability.model_copy(update={"quarantine": "off"})
    off = synthesize(prod.model_copy(update={"observability": settings}))
    assert _rule(off.templates["observability"]) is None
    assert "podwright-node-markers" not in json.dumps(off.templates["eks"])


def test_slurm_gets_the_extension_and_nodes_that_may_write() -> None:
    slurm = synthesis("slurm-classic")
    extension = one(slurm, "Custom::PodwrightClusterExtension")
    assert extension["Name"] == "sagemaker-observability"
    assert json.loads(extension["Settings"]) == {"metricsProvider": {"nodeMetrics": {"level": "BASIC"}}}
    assert {"Key": "podwright:environment", "Value": "slurm-classic"} in extension["Tags"]
    resources = slurm.templates["observability"]["Resources"]
    assert any(name.startswith("NodesWriteMetrics") for name in resources)
    assert not of_type(slurm.templates["observability"], "AWS::EKS::Addon")
    measured = [
        item for item in of_type(slurm.templates["observability"], "AWS::Lambda::Function") if item["Timeout"] == 55
    ]
    assert ["VpcConfig" in item for item in measured] == [False]
    nodes = {text(item["ServiceName"]) for item in of_type(slurm.templates["network"], "AWS::EC2::VPCEndpoint")}
    assert "com.amazonaws.us-west-2.aps-workspaces" in nodes


def test_logs_of_hyperpod_and_of_the_control_plane_are_kept_and_encrypted() -> None:
    prod = synthesis("prod")
    actual = of_type(prod.templates["observability"], "Custom::PodwrightServiceLogs")
    groups = {json.dumps(item["LogGroup"]) for item in actual}
    assert any("/aws/sagemaker/Clusters/prod/" in name for name in groups)
    assert any("/aws/eks/" in name and "/cluster" in name for name in groups)
    assert {item["RetentionDays"] for item in actual} == {90}
    assert len({json.dumps(item["KmsKeyArn"]) for item in actual}) == 1


def test_logs_that_outlive_our_key_are_readable_without_it() -> None:
    """A group of a service stays when its environment goes; under `destroy` our key does not."""
    dev = synthesis("dev")
    [key] = of_type_with_policies(dev.templates["network"], "AWS::KMS::Key")
    assert key["DeletionPolicy"] == "Delete"
    actual = of_type(dev.templates["observability"], "Custom::PodwrightServiceLogs")
    assert len(actual) == 2
    assert [item for item in actual if "KmsKeyArn" in item] == []
    assert permissions(dev, "logs:DisassociateKmsKey")
    assert not permissions(dev, "logs:AssociateKmsKey")


def test_logs_under_an_existing_key_which_stays_are_encrypted_with_it() -> None:
    key = "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
    adopted = synthesize(environment_of(CLOSED + f"protection: destroy\nstorage: {{kms_key: {key}}}\n"))
    actual = of_type(adopted.templates["observability"], "Custom::PodwrightServiceLogs")
    assert {item["KmsKeyArn"] for item in actual} == {key}


def test_groups_of_stacks_go_before_their_key() -> None:
    """CloudFormation deletes users first: each group either refers to the key or imports it from its stack."""
    retained = {"dev": "Delete", "prod": "RetainExceptOnCreate", "slurm-classic": "RetainExceptOnCreate"}
    for name in retained:
        for template in synthesis(name).templates.values():
            for group in of_type_with_policies(template, "AWS::Logs::LogGroup"):
                assert text(group["Properties"]["KmsKeyId"]).startswith("<"), group
                assert group["DeletionPolicy"] in ("Delete", retained[name]), group


def of_type_with_policies(template: Template, resource_type: str) -> list[dict[str, Any]]:
    """Resources of a type in one template, with their deletion policies."""
    return [item for item in template["Resources"].values() if item["Type"] == resource_type]


def test_nothing_is_there_that_nobody_asked_for() -> None:
    queues = synthesis("training-jobs-queue")
    types = {item["Type"] for item in queues.templates["observability"]["Resources"].values()}
    assert not types & {"AWS::APS::Workspace", "Custom::PodwrightServiceLogs", "AWS::EKS::Addon"}
    assert "observability" not in synthesis("two-teams").templates


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_grafana_fails_alone() -> None:
    """A workspace that an account cannot have must not take back what measures and alerts."""
    prod = synthesis("prod")
    grafana = {item["Type"] for item in prod.templates["grafana"]["Resources"].values()}
    assert grafana >= {"AWS::Grafana::Workspace", "Custom::PodwrightGrafanaContent"}
    others = {name: template for name, template in prod.templates.items() if name != "grafana"}
    types = {item["Type"] for template in others.values() for item in template["Resources"].values()}
    assert [kind for kind in types if "Grafana" in kind] == []
    assert [name for name in others if "grafana" in prod.earlier_stacks(name)] == []
    assert "observability" in prod.earlier_stacks("grafana")
    assert "grafana" not in synthesis("dev").templates
