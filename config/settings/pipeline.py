"""What `pipeline:` of `podwright.yaml` says: where commits come from, and the order in which environments get them."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from .base import Account, BucketName, PolicyArn, Region, Settings, one_or_more

Text = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Repository = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+$", max_length=200)]
Branch = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_./-]+$", max_length=255)]
# CodePipeline User Guide, "CodeStarSourceConnection", 2026-11: connections made before 2024-07 keep the older name.
ConnectionArn = Annotated[
    str,
    StringConstraints(
        pattern=r"^arn:aws[a-z-]*:(codeconnections|codestar-connections):[a-z0-9-]+:[0-9]{12}:connection/[0-9a-f-]{36}$"
    ),
]
EnvironmentName = Annotated[str, StringConstraints(pattern=r"^[a-z]([a-z0-9-]*[a-z0-9])?$", max_length=32)]
# A role's name holds it, `-pipeline-`, an environment's name and a word, in 64 characters.
PipelineName = Annotated[str, StringConstraints(pattern=r"^[a-z]([a-z0-9-]*[a-z0-9])?$", max_length=14)]
Email = Annotated[str, StringConstraints(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$", max_length=320)]
GateName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$", max_length=40)]
DomainName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,48}[a-z0-9]$")]

_KINDS = ("repository", "codecommit", "bucket")


class PipelineSource(Settings):
    """Where the project's files come from. Exactly one of `repository`, `codecommit` and `bucket` is given."""

    repository: Repository | None = None
    """Owner and name at GitHub, GitLab or Bitbucket, such as acme/clusters."""
    connection: ConnectionArn | None = None
    """ARN of the CodeConnections connection to it. CodePipeline needs it; GitHub Actions does without."""
    # Not `\w`, which here is every letter of Unicode: a hundred of those take 80 ms to compile.
    codecommit: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,100}$")] | None = None
    """Name of a CodeCommit repository in the pipeline's account and region."""
    bucket: BucketName | None = None
    """Name of a bucket with versions, in which `key` is a zip of the project."""
    key: Text | None = None
    """Key of the zip in `bucket`."""
    branch: Branch = "main"
    """Branch whose commits are promoted; of no meaning for a bucket."""
    oidc_provider: Literal["create", "existing"] = "create"
    """Whether accounts get GitHub's identity provider, or have it: an account takes each provider only once."""

    @model_validator(mode="after")
    def _is_one_kind(self) -> "PipelineSource":
        specified = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(specified) != 1:
            raise ValueError(f"needs exactly one of {', '.join(_KINDS)}; given: {', '.join(specified) or 'none'}")
        if (self.bucket is None) != (self.key is None):
            raise ValueError("bucket and key go together")
        if self.connection is not None and self.repository is None:
            raise ValueError("connection goes with repository")
        return self

    @property
    def on_github(self) -> bool:
        """Whether GitHub Actions promotes: a repository without a connection. Otherwise CodePipeline does."""
        return self.repository is not None and self.connection is None


class PipelineStage(Settings):
    """Environments that are deployed side by side, once all of the stage before have passed their gates."""

    environments: Annotated[
        tuple[EnvironmentName, ...],
        BeforeValidator(one_or_more, json_schema_input_type=EnvironmentName | tuple[EnvironmentName, ...]),
        Field(min_length=1, max_length=10),
    ]
    """Names of the environments; one name may stand without brackets."""
    manual: bool = False
    """Whether a person approves the stage after seeing what it changes."""
    gates: tuple[GateName, ...] = ()
    """Gates that have to pass after the deployment. Default: all that apply to the environment."""

    @property
    def name(self) -> str:
        """What the stage is called: the names of its environments."""
        return "-".join(self.environments)


class PipelinePackages(Settings):
    """A CodeArtifact repository from which builds install Python and Node packages, in place of PyPI and npm."""

    domain: DomainName
    """Name of the domain."""
    repository: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{1,99}$")]
    """Name of the repository; it serves both formats."""
    owner: Account | None = None
    """Account of the domain. Default: the pipeline's."""
    region: Region | None = None
    """Region of the domain. Default: the pipeline's."""


class Drift(Settings):
    """The check of what was changed behind the files' back."""

    schedule: Annotated[str, StringConstraints(pattern=r"^(off|cron\([^()]+\))$")] = "cron(0 6 * * ? *)"
    """When to look, as EventBridge cron in UTC: every morning at six unless the file says otherwise. `off`: never."""


class Pipeline(Settings):
    """How commits are promoted. Without `source` there is an order, but neither CodePipeline nor GitHub Actions."""

    name: PipelineName = "podwright"
    """What names of stacks and roles begin with; two projects that share an account need two."""
    account: Account | None = None
    """Account of the pipeline. One of its own is best: it may deploy to all others."""
    region: Region | None = None
    """Region of the pipeline."""
    source: PipelineSource | None = None
    """Where the project's files come from."""
    stages: tuple[PipelineStage, ...] = Field(default=(), max_length=40)
    """In the order of promotion. Default: each environment of `environments:` is a stage of its own."""
    tests: tuple[Text, ...] = ()
    """Command lines of your own that have to pass before anything is deployed, such as `pytest tests`."""
    drift: Drift = Drift.model_construct()
    """The check of what was changed behind the files' back."""
    notify: tuple[Email, ...] = Field(default=(), max_length=20)
    """Who is told of a failed stage, of an approval that waits, and of drift."""
    permissions_boundary: PolicyArn | None = None
    """Boundary of the pipeline's roles. Default: one that `pipeline bootstrap` makes. Environments name their own."""
    packages: PipelinePackages | None = None
    """A CodeArtifact repository for builds without a way to PyPI and npm."""

    def own_boundary(self, partition: str, account: str) -> str:
        """ARN of the boundary that `podwright pipeline bootstrap` makes in an account, for roles that have no other.

        Args:
            partition: aws, aws-cn or another.
            account: Account of the roles.
        """
        return f"arn:{partition}:iam::{account}:policy/{self.name}-boundary"

    def boundary(self, partition: str) -> str:
        """ARN of the boundary of the pipeline's own roles. `account` must be known."""
        return self.permissions_boundary or self.own_boundary(partition, str(self.account))
