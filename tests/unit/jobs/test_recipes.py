"""`podwright submit` of a recipe: by the launcher of a checkout, here one that prints what it is told."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podwright.operations.aws.account import Account
from podwright.operations.cli import main
from podwright.operations.jobs import recipe_launcher
from podwright.operations.kubernetes.in_vpc import InVpc
from podwright.operations.kubernetes.kubectl import Kubectl
from podwright.planning.jobs.recipes import known_recipes
from podwright.planning.rules.pages import FOLDER

LAUNCHER = """
import json, os, shutil, sys
if "fail" in os.environ:
    sys.exit("Could not override 'recipes.x'")
print(json.dumps({"words": sys.argv[1:], "kubeconfig": os.environ["KUBECONFIG"], "helm": shutil.which("helm")}))
"""
JOB = """
platform: {cert_manager: {}, training_operator: {}}
jobs:
  tune:
    kind: recipe
    group: h200
    image: "111122223333.dkr.ecr.us-west-2.amazonaws.com/llmft:1"
    path: fine-tuning/llama/llmft_llama3_1_8b_instruct_seq4k_gpu_sft_lora
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Submits the recipe of a project."""
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/prod.yaml").write_text((FOLDER / "base.yaml").read_text() + JOB)
    (tmp_path / "collection").mkdir()
    (tmp_path / "collection/main.py").write_text(LAUNCHER)
    (tmp_path / "kubeconfig").touch()
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.delenv("SAGEMAKER_TRAINING_LAUNCHER_DIR", raising=False)

    def called(*options: str, recipes: str | None = "collection") -> int:
        where = ["--recipes", str(tmp_path / recipes)] if recipes else []
        way = ["--kubeconfig", str(tmp_path / "kubeconfig"), "--project", str(tmp_path)]
        return main(["submit", "prod", "tune", *where, *options, *way])

    return called


def test_the_launcher_starts_it_on_the_cluster(submitted: Callable[..., int], tmp_path: Path, capsys: Capture) -> None:
    assert submitted() == 0
    printed, *following = capsys.readouterr().out.splitlines()
    launched: dict[str, Any] = json.loads(printed)
    assert launched["words"][0] == "recipes=fine-tuning/llama/llmft_llama3_1_8b_instruct_seq4k_gpu_sft_lora"
    assert launched["words"][-1] == f"base_results_dir={tmp_path}/collection/results"
    assert launched["kubeconfig"] == str(tmp_path / "kubeconfig")
    assert Path(launched["helm"]).is_file()
    assert following == [
        f"Where it stands:  podwright why prod tune --kubeconfig {tmp_path}/kubeconfig",
        f"Its log:          podwright logs prod tune --kubeconfig {tmp_path}/kubeconfig",
    ]


def test_a_dry_run_is_the_launchers_own(submitted: Callable[..., int], capsys: Capture) -> None:
    assert submitted("--dry-run", "--json", "--set", "nodes=2") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"job": "tune", "dry_run": True, "next": []}
    words = json.loads(captured.err)["words"]
    assert words[-1] == "dry_run=true"
    assert "recipes.trainer.num_nodes=2" in words


@pytest.mark.parametrize(
    ("recipes", "words"), [(None, "does not know where it is"), ("environments", "it has no main.py")]
)
def test_without_a_checkout_it_says_how_to_get_one(
    recipes: str | None, words: str, submitted: Callable[..., int], capsys: Capture
) -> None:
    assert submitted(recipes=recipes) == 2
    message = capsys.readouterr().err
    assert words in message
    assert "git clone" in message


def test_what_the_launcher_says_against_it_is_printed(
    submitted: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("fail", "yes")
    assert submitted() == 1
    assert "launcher ended with 1: Could not override 'recipes.x'" in capsys.readouterr().err


def test_the_launcher_needs_a_way_of_its_own(
    submitted: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def inside(args: Any, environment: Any) -> Kubectl:
        return InVpc(Path(), True, Account("111122223333", "us-west-2", None, {}), environment)

    monkeypatch.setattr(recipe_launcher, "kubectl_for", inside)
    assert submitted() == 1
    assert "podwright connect prod" in capsys.readouterr().err


def test_a_path_that_is_not_there_is_refused_with_the_nearest(submitted: Callable[..., int], capsys: Capture) -> None:
    assert submitted("--set", "path=fine-tuning/llama/llmft_llama3_1_8b_seq4k_gpu_sft_lora") == 1
    message = capsys.readouterr().err
    assert "JOB060" in message
    assert "llmft_llama3_1_8b_instruct_seq4k_gpu_sft_lora (Llama 3.1 Instruct 8B, SFT with LoRA)" in message


def test_the_elastic_recipes_are_those_that_aws_counts() -> None:
    """Source: SageMaker Developer Guide, elastic training: 46 for SFT and DPO."""
    elastic = [recipe for recipe in known_recipes().values() if recipe.elastic]
    assert len(elastic) == 46
    assert {recipe.technique for recipe in elastic} == {"SFT with LoRA", "DPO with LoRA"}
    assert [recipe.path for recipe in known_recipes().values() if recipe.scales and not recipe.elastic] == []
