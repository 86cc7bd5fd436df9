"""Physical names. Only what another system dictates has one; CloudFormation names all else."""

from typing import Final

from .limits import limits

CERTIFICATE_BUCKETS: Final = "hyperpod-tls"
"""What names of buckets begin with that AWS's managed policy of the inference operator allows. Source:
AmazonSageMakerHyperPodInferenceAccess, version 4 of 2026-07-20."""


def lifecycle_bucket_name(environment: str, account: str, region: str) -> str:
    """Name of an environment's bucket for lifecycle scripts.

    HyperPod's managed node policy reads only buckets whose names begin with `sagemaker-`; the rest makes the name
    unlike all others in S3. S3 takes at most 63 characters, which a rule compares.
    """
    return f"{limits().cluster.lifecycle_bucket_prefix}{environment}-{account}-{region}"


def certificate_bucket_name(environment: str, account: str, region: str) -> str:
    """Name of an environment's bucket for certificates of model endpoints.

    AWS's managed policy of the inference operator allows names that begin with `hyperpod-tls`. A rule
    compares the length.
    """
    return f"{CERTIFICATE_BUCKETS}-{environment}-{account}-{region}"


def benchmark_prefix(cluster: str) -> str:
    """Prefix of the lifecycle bucket for what the nodes of a cluster measured.

    It lies below the cluster's own prefix, beside the digests of published scripts, which are hexadecimal: what removes
    a cluster's scripts removes its results.
    """
    return f"{cluster}/benchmarks"


def setup_prefix(cluster: str) -> str:
    """Prefix of the lifecycle bucket for what came of the set-ups of a cluster's nodes, beside `benchmark_prefix`."""
    return f"{cluster}/setup"


def quarantine_prefix(cluster: str) -> str:
    """Prefix of the lifecycle bucket for who took which node out of work, and why, beside `benchmark_prefix`."""
    return f"{cluster}/quarantine"


def cluster_log_group(cluster: str, identity: str = "*") -> str:
    """The log group that HyperPod itself makes for a cluster, whose id is the last part of its ARN; `*`: of any id."""
    return f"/aws/sagemaker/Clusters/{cluster}/{identity}"
