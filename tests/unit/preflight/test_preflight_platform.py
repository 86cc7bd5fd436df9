"""What preflight asks an account about operators beside the work, and about queues without a cluster."""

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from podwright.config.loading.project import Project
from podwright.config.settings.environment import Environment
from podwright.config.settings.platform import InferenceOperator
from podwright.operations.preflight.account_checks import deployment_actions, roles
from podwright.operations.preflight.place_checks import hyperpod_here

PROJECT = Project.at(Path(__file__).parents[3])


def ask(name: str, asked: list[dict[str, Any]], environment: Environment | None = None) -> Any:
    """An account that has nothing, and notes what it was asked for."""

    def find(service: str, operation: str, absent: set[str], **request: Any) -> None:
        del service, operation, absent
        asked.append(request)

    environment = environment or PROJECT.load(name).environment
    return SimpleNamespace(environment=environment, account=environment.account, aws=SimpleNamespace(find=find))


def test_actions_follow_from_what_is_deployed() -> None:
    queues = deployment_actions(PROJECT.load("training-jobs-queue").environment)
    assert "batch:CreateQuotaShare" in queues
    assert not [action for action in queues if action.startswith(("sagemaker:", "eks:"))]
    tools = deployment_actions(PROJECT.load("dev").environment)
    assert {"sagemaker:CreateMlflowApp", "eks:CreatePodIdentityAssociation", "sagemaker:CreateCluster"} <= set(tools)
    assert not [action for action in tools if action.startswith("batch:")]


def test_roles_of_the_inference_operator_have_to_be_there() -> None:
    dev = PROJECT.load("dev").environment
    named = {
        name: f"arn:aws:iam::111122223333:role/{name}"
        for name in InferenceOperator.model_fields
        if name.endswith("_role")
    }
    platform = dev.platform.model_copy(update={"inference": InferenceOperator.model_validate(named)})
    specified = dev.model_copy(update={"platform": platform})
    assert paths(roles(ask("dev", [], specified))) >= {f"platform.inference.{name}" for name in named}
    assert not {path for path in paths(roles(ask("dev", []))) if path.startswith("platform")}, "made by the deployment"


def paths(answers: Iterable[Any]) -> set[str]:
    return {".".join(map(str, item.path)) for item in answers if hasattr(item, "path")}


def test_the_region_has_to_have_what_is_deployed() -> None:
    asked: list[dict[str, Any]] = []
    list(hyperpod_here(ask("training-jobs-queue", asked)))
    assert {item["TypeName"] for item in asked} == {
        "AWS::Batch::QuotaShare",
        "AWS::Budgets::Budget",
        "AWS::FSx::FileSystem",
    }
    asked.clear()
    list(hyperpod_here(ask("dev", asked)))
    assert {"AWS::SageMaker::Cluster", "AWS::SageMaker::MlflowApp"} <= {item["TypeName"] for item in asked}
