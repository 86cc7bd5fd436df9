"""The runtime that a TrainJob of PyTorch refers to."""

from typing import Any, Final

RUNTIME: Final = "torch-distributed"
"""Name of the runtime, the same as in Kubeflow Trainer's own chart."""
_GROUP: Final = "trainer.kubeflow.org"


def torch_runtime() -> dict[str, Any]:
    """A ClusterTrainingRuntime for torchrun: pods of one job called `node`, to which the trainer gives their ranks.

    Kubeflow's chart installs its runtimes with a job that fetches kubectl from the internet when it runs, and binds
    them to a user id and an image. This one has neither: image, command and resources are the TrainJob's.
    """
    return {
        "apiVersion": f"{_GROUP}/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {
            "name": RUNTIME,
            # The webhook that checks runtimes may not answer yet when this is applied.
            "labels": {f"{_GROUP}/framework": "torch", f"{_GROUP}/webhook-validation": "disabled"},
        },
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {
                "spec": {
                    "replicatedJobs": [
                        {
                            "name": "node",
                            "template": {
                                "metadata": {"labels": {f"{_GROUP}/trainjob-ancestor-step": "trainer"}},
                                "spec": {"template": {"spec": {"containers": [{"name": "node"}]}}},
                            },
                        }
                    ]
                }
            },
        },
    }
