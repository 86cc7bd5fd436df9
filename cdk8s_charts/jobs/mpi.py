"""MPIJob, of the MPI operator 0.5, for programs of your own and for NVIDIA's nccl-tests."""

from ...config.settings.jobs.kinds import MpiJob, NcclTest
from ...planning.jobs.mlflow import TRACKING_URI
from ...planning.jobs.plan import JobPlan
from .pod import Manifest, beside_template, metadata, pod_template

_CLEAN_PODS = {"all": "All", "running": "Running", "none": "None"}
# Which names of Open MPI 4 and 5 keep its own traffic off the interfaces that lead nowhere.
_TCP_ONLY = (
    "--mca",
    "pml",
    "^cm",
    "--mca",
    "btl",
    "tcp,self",
    "--mca",
    "btl_tcp_if_exclude",
    "lo,docker0,veth_def_agent",
)
# Columns of nccl-tests: the size first, the bus bandwidth out of place eighth. The last size is the largest.
_JUDGE = (
    '{ print } /^ *[0-9]/ && NF > 8 { seen = 1; busbw = $8 } END { if (!seen) { print "no result"; exit 1 } '
    'if (busbw + 0 < least) { print "bus bandwidth " busbw " GB/s is below the expected " least; exit 1 } }'
)


def manifests(plan: JobPlan) -> list[Manifest]:
    """The job object: workers that wait for connections, and a launcher that makes them."""
    job: MpiJob | NcclTest = plan.job
    slots = plan.pod.ranks
    command = _nccl_test(plan, job, slots) if isinstance(job, NcclTest) else list(job.command)
    launcher: Manifest = {"name": "mpi-launcher"} | ({"command": command} if command else {})
    worker = {"name": "mpi-worker", "command": ["/usr/sbin/sshd"], "args": ["-De"]}
    run_policy: Manifest = {
        "cleanPodPolicy": _CLEAN_PODS[job.clean_pods],
        "backoffLimit": job.retries,
        "ttlSecondsAfterFinished": job.keep_seconds,
    }
    if job.active_deadline_seconds is not None:
        run_policy["activeDeadlineSeconds"] = job.active_deadline_seconds
    spec: Manifest = {
        "slotsPerWorker": slots,
        "runPolicy": run_policy,
        "launcherCreationPolicy": "WaitForWorkersReady",
        "mpiImplementation": "OpenMPI",
        "mpiReplicaSpecs": {
            "Launcher": {
                "replicas": 1,
                "restartPolicy": "OnFailure",
                "template": beside_template(plan, job.launcher, launcher),
            },
            "Worker": {"replicas": job.start, "restartPolicy": "OnFailure", "template": pod_template(plan, worker)},
        },
    }
    return [{"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": metadata(plan), "spec": spec}]


def _nccl_test(plan: JobPlan, job: NcclTest, slots: int) -> list[str]:
    """Mpirun with one process for each accelerator, which all check their results."""
    ranks = slots * job.start
    # Processes on other nodes see only what mpirun is told to hand on.
    recorded = (TRACKING_URI,) if plan.mlflow else ()
    handed_on = [part for name in ("LD_LIBRARY_PATH", "PATH", *plan.pod.env, *recorded) for part in ("-x", name)]
    mpirun = ["mpirun", "--allow-run-as-root", "-np", str(ranks), "-N", str(slots), "--bind-to", "none"]
    sizes = ["-b", job.min_bytes, "-e", job.max_bytes, "-f", "2"]
    counts = ["-g", "1", "-c", "1", "-n", str(job.iterations), "-w", str(job.warmup)]
    program = f"{job.folder}/{job.test}_perf"
    measured = [*mpirun, *_TCP_ONLY, *handed_on, program, *sizes, *counts]
    if job.expect_gb_per_second is None:
        return measured
    judge = f"set -o pipefail; \"$@\" | awk -v least={job.expect_gb_per_second:g} '{_JUDGE}'"
    return ["/bin/bash", "-c", judge, "--", *measured]
