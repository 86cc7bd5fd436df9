"""The runtime that TrainJobs refer to, against the model of Kubeflow, and on a store."""

from importlib import import_module

import pytest

from podwright.cdk8s_charts.training_runtime import RUNTIME, torch_runtime
from podwright.config.settings.jobs.kinds import TrainJob
from podwright.sandbox.kubernetes.store import ApiError, KubernetesStore


def test_the_runtime_is_one_that_kubeflow_knows() -> None:
    api = import_module("kubeflow_trainer_api.models.trainer_v1alpha1_cluster_training_runtime")
    made = torch_runtime()
    parsed = api.TrainerV1alpha1ClusterTrainingRuntime.from_dict(made)
    assert parsed.to_dict() == made, "nothing of it is unknown to Kubeflow's model"
    (job,) = parsed.spec.template.spec.replicated_jobs
    assert job.name == "node"
    assert job.template.metadata.labels == {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}


def test_it_is_there_under_the_name_that_jobs_take() -> None:
    assert torch_runtime()["metadata"]["name"] == RUNTIME == TrainJob.model_fields["runtime"].default


def test_the_double_takes_it_once_the_trainer_is_installed() -> None:
    store = KubernetesStore("1.34")
    with pytest.raises(ApiError, match="no matches for kind"):
        store.create(torch_runtime())
    store.install("kubeflow-trainer")
    assert store.create(torch_runtime())["metadata"]["name"] == RUNTIME
