"""The shapes of jobs of the documentation: what the page says is what is checked, rendered and judged.

The judges that need a real API server are in tests/kubernetes/test_rendered_objects.py.
"""

import re
import subprocess
from types import SimpleNamespace
from typing import Any, Final

import kubernetes_validate
import pytest
from pydantic import ValidationError

from hyp_endpoints import MODELS, differences, differences_of_jumpstart
from hyp_jobs import MODEL, accepted, compared, made_by_hyp
from job_environment import aws_model
from job_shapes import PAGE, SHAPES, TABLE, Shape
from podwright.cdk8s_charts.jobs.render import KINDS
from podwright.config.findings import errors
from podwright.planning.rules.run import findings
from podwright.sandbox.kubernetes import custom_kinds

Object = dict[str, Any]
JUDGES: Final = {
    "hyperpod_pytorch": "AWS's model and `hyp create hyp-pytorch-job`",
    "inference": "AWS's model and `hyp create hyp-custom-endpoint`",
    "jumpstart": "AWS's model and `hyp create hyp-jumpstart-endpoint`",
    "job": "Kubernetes' schema, strict",
    "recipe": "bash",
    "pytorch": "upstream's definition on a real API server",
    "mpi": "upstream's definition on a real API server",
    "ray_cluster": "upstream's definition on a real API server; Kueue and KubeRay run it",
    "jobset": "upstream's definition on a real API server; Kueue and JobSet run it",
    "leader_worker_set": "upstream's definition on a real API server",
}
"""Who judges a kind, in the words of the table."""


def of(*kinds: str) -> pytest.MarkDecorator:
    """A test of the shapes of some kinds, of which there is at least one each."""
    shapes = [shape for shape in SHAPES if shape.plan.job.kind in kinds]
    assert {shape.plan.job.kind for shape in shapes} == set(kinds)
    return pytest.mark.parametrize("shape", shapes, ids=lambda shape: shape.anchor)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.anchor)
def test_nothing_is_found_in_a_shape(shape: Shape) -> None:
    loaded = shape.loaded
    assert [f"{item.id} {item.path}" for item in errors(findings(loaded.environment, loaded.source))] == []


def test_the_table_has_every_shape_and_says_who_judges_it() -> None:
    rows = re.findall(
        r"^\| \[(.+?)\]\(job-shapes\.md#(.+?)\) \| .+ \| \[.+\]\(job-objects\.md#(.+?)\) \| (.+?) \|$",
        TABLE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert rows == [(each.title, each.anchor, each.anchor, JUDGES[each.plan.job.kind]) for each in SHAPES]


@of("hyperpod_pytorch")
def test_aws_takes_and_makes_the_job(shape: Shape) -> None:
    (manifest,) = shape.objects
    assert custom_kinds.violations(manifest) == []
    accepted(aws_model(MODEL, "_HyperPodPytorchJob"), manifest)
    (made,) = made_by_hyp([manifest])
    assert compared(made) == compared(manifest["spec"])


@of("inference")
def test_aws_takes_and_makes_the_endpoint(shape: Shape, template: SimpleNamespace) -> None:
    (manifest,) = shape.objects
    strictly_valid(manifest, "hp_endpoint_config.py", "_HPEndpoint")
    assert differences(template, manifest) == []


@of("jumpstart")
def test_aws_takes_and_makes_the_jumpstart_model(shape: Shape, jumpstart_template: SimpleNamespace) -> None:
    (manifest,) = shape.objects
    strictly_valid(manifest, "hp_jumpstart_endpoint_config.py", "_HPJumpStartEndpoint")
    assert differences_of_jumpstart(jumpstart_template, manifest) == []


def strictly_valid(manifest: Object, file: str, name: str) -> None:
    """Hold an endpoint to our schema and to AWS's model, which refuses what it does not know."""
    assert custom_kinds.violations(manifest) == []
    model = aws_model(f"{MODELS}/{file}", name)
    model.model_validate(manifest["spec"], by_name=True, by_alias=False)
    with pytest.raises(ValidationError, match="immage"):
        model.model_validate(manifest["spec"] | {"immage": "x"}, by_name=True, by_alias=False)


@of("job")
@pytest.mark.parametrize("version", ["1.33", "1.35"])
def test_kubernetes_takes_the_job(shape: Shape, version: str) -> None:
    (manifest,) = shape.objects
    kubernetes_validate.validate(manifest, version, strict=True)


@of("recipe")
def test_bash_takes_the_script(shape: Shape) -> None:
    done = subprocess.run(["bash", "-n"], input=shape.script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_kind_of_a_shape_has_a_judge() -> None:
    assert {shape.plan.job.kind for shape in SHAPES} == JUDGES.keys()
    assert JUDGES.keys() <= {*KINDS, "recipe"}


def test_the_page_has_no_other_pieces() -> None:
    """A piece without a title of its own would be read by nobody."""
    text = PAGE.read_text(encoding="utf-8")
    assert text.count("```yaml") == text.count("\n## ") == len(SHAPES) >= 12
