"""The Slurm orchestrator: who writes its configuration, and where it keeps its accounts.

Source: SageMaker Developer Guide, "SageMaker HyperPod Slurm configuration" and "Migrating to API-driven Slurm
configuration", 2026-11; SageMaker API, ClusterOrchestratorSlurmConfig.
"""

from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from .base import MountPath, SecurityGroupId, Settings

# What slurm.conf takes as one word; a rule says what the API's ClusterPartitionNames takes of it.
PartitionName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9_.-]*$", max_length=1024)]
API_PARTITION_NAME: Final = r"[a-zA-Z0-9](-*[a-zA-Z0-9])*"
"""Pattern of the API's ClusterPartitionNames."""
SecretArn = Annotated[
    str, StringConstraints(pattern=r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:.+$", max_length=2048)
]
TopicArn = Annotated[
    str, StringConstraints(pattern=r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+$", max_length=2048)
]
HostName = Annotated[
    str,
    StringConstraints(
        pattern=r"^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$",
        max_length=255,
    ),
]
# Half steps of Aurora capacity units.
CapacityUnits = Annotated[float, Field(ge=0.5, le=256, multiple_of=0.5)]


class AdoptedDatabase(Settings):
    """An existing MySQL-compatible database. Its user has to be able to create the schema."""

    endpoint: HostName
    """Host name."""
    port: int = Field(default=3306, ge=1, le=65535)
    """Port."""
    secret: SecretArn
    """Secret with `username` and `password`, which the controller reads."""
    user: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+$", max_length=32)] = "slurm"
    """The user name that the secret holds; HyperPod wants it in provisioning_parameters.json besides."""
    security_group: SecurityGroupId | None = None
    """A security group of the database, which is opened to the nodes; left alone when absent."""


class AccountingDatabase(Settings):
    """Slurm's accounts in a database outside the controller: Aurora MySQL (serverless v2), or an existing one."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9$_]+$", max_length=64)] = "slurm_acct_db"
    """Name of the schema."""
    version: Annotated[str, StringConstraints(pattern=r"^8\.[0-9]+\.mysql_aurora\.[0-9]+\.[0-9]+\.[0-9]+$")] = (
        "8.0.mysql_aurora.3.10.4"
    )
    """Engine version."""
    min_capacity: CapacityUnits = 0.5
    """Aurora capacity units that it keeps when idle."""
    max_capacity: CapacityUnits = 4.0
    """Aurora capacity units that it may grow to."""
    standby: bool = True
    """A second instance in another zone that takes over; without one a fault stops accounting for minutes."""
    backup_days: int = Field(default=7, ge=1, le=35)
    """Days that a daily backup is kept."""
    existing: AdoptedDatabase | None = None
    """An existing database instead of a new one."""


class Slurm(Settings):
    """The Slurm orchestrator of a HyperPod cluster."""

    configuration: Literal["api", "provisioning_parameters"] = "api"
    """Who tells HyperPod what the groups are: the CreateCluster call, or the older file beside the scripts, which
    clusters with several controllers need."""
    strategy: Literal["merge", "managed", "overwrite"] = "merge"
    """What HyperPod does to changes in slurm.conf that are not its own: keep them, refuse updates because of them, or
    overwrite them. Continuous provisioning knows merge only."""
    accounting: AccountingDatabase | None = None
    """Accounts in a database of their own; in MariaDB on the controller when absent."""
    shared_directory: MountPath | None = None
    """Folder of a shared file system for the state of several controllers. Default: the mount of the Lustre file
    system, when there are several."""
    failover_topic: TopicArn | None = None
    """Existing SNS topic that hears when a controller takes or leaves charge; nobody hears it when absent."""


class GroupSlurm(Settings):
    """What the nodes of an instance group are to Slurm."""

    node_type: Literal["controller", "login", "compute"]
    """Their part. Default: that of the group's name when it is `controller` or `login`, else compute. It cannot be
    changed in a cluster that exists."""
    partition: PartitionName | None = None
    """Partition of compute nodes. Default: the group's name."""
