"""Rules on lists, names, tags, ARNs and facts of an environment as a whole."""

from collections import Counter
from typing import get_args

from ....config.catalog.instance_types import InvalidOverride, catalog
from ....config.catalog.limits import limits
from ....config.catalog.names import certificate_bucket_name, lifecycle_bucket_name
from ....config.catalog.regions import UnknownRegion, region
from ....config.settings.base import Settings
from ....config.settings.environment import Environment
from ....config.settings.jobs.pods import Argument
from ....config.settings.jobs.training import Word
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule
from ..groups.arns import arns

_BUCKET_LENGTH = 63
# CDK and podwright add a Name and what CloudFormation itself writes.
_OWN_TAGS = 5


@rule("ENV013", ERROR, on=Settings, source="", final=True)
def said_twice(settings: Settings) -> Problems:
    """Duplicate list entry."""
    for name, field in type(settings).model_fields.items():
        items = getattr(settings, name)
        is_command = not {Argument, Word}.isdisjoint(get_args(field.annotation))
        if isinstance(items, tuple) and not is_command and not any(isinstance(item, Settings) for item in items):
            observed: Counter[object] = Counter()
            for index, item in enumerate(items):
                observed[item] += 1
                if observed[item] == 2:
                    yield Problem((field.alias or name, index), f"{item} is listed twice", "remove the repetition")


@rule("ENV014", ERROR, on=Environment, source="", final=True)
def facts(environment: Environment) -> Problems:
    """Invalid instance type facts."""
    for name, specified in environment.instance_types.items():
        try:
            catalog({name: specified})
        except InvalidOverride as error:
            path = ("instance_types", name, error.field) if error.field else ("instance_types", name)
            yield Problem(path, str(error), "correct it; `podwright explain ENV014` shows an example")


@rule("ENV015", ERROR, on=Environment, source="cfn-regions", final=True)
def known_region(environment: Environment) -> Problems:
    """Unknown AWS region."""
    try:
        region(environment.region)
    except UnknownRegion as error:
        yield Problem("region", str(error), "write it as `aws ec2 describe-regions` prints it")


@rule("ENV016", ERROR, on=Environment, source="cfn-regions")
def listed_region(environment: Environment) -> Problems:
    """Region not listed for HyperPod."""
    try:
        known = region(environment.region)
    except UnknownRegion:
        return
    if not known.cluster:
        yield Problem(
            "region",
            f"CloudFormation does not list AWS::SageMaker::Cluster in {environment.region}",
            "check the AWS list of services by region; podwright's list may be old",
        )


@rule("ENV017", ERROR, on=Environment, source="s3-names", final=True)
def bucket_length(environment: Environment) -> Problems:
    """Bucket name too long."""
    location = environment.name, environment.account, environment.region
    operator = environment.platform.inference
    names: list[tuple[str, str, str]] = []
    if environment.storage.buckets.lifecycle is None:
        names.append(("lifecycle bucket", lifecycle_bucket_name(*location), "storage.buckets.lifecycle"))
    if operator and operator.tls_bucket is None:
        names.append(("bucket for certificates", certificate_bucket_name(*location), "platform.inference.tls_bucket"))
    for what, name, setting in names:
        if len(name) > _BUCKET_LENGTH:
            most = len(environment.name) - (len(name) - _BUCKET_LENGTH)
            yield Problem(
                "name",
                f"the {what} would be called {name}, {len(name)} characters; allowed: {_BUCKET_LENGTH}",
                f"use a name of at most {most} characters, or an existing bucket under {setting}",
            )


@rule("ENV018", ERROR, on=Environment, source="tagging", final=True)
def reserved_tags(environment: Environment) -> Problems:
    """Reserved tag key."""
    for key in environment.tags:
        if key.lower().startswith("aws:"):
            yield Problem(("tags", key), f"{key} begins with aws:, which AWS writes itself", "use a prefix of your own")


@rule("ENV019", ERROR, on=Environment, source="iam-tags", final=True)
def tag_case(environment: Environment) -> Problems:
    """Tag keys differ only in case."""
    observed: dict[str, str] = {}
    for key in environment.tags:
        if (first := observed.setdefault(key.lower(), key)) != key:
            yield Problem(
                ("tags", key), f"{key} and {first} are one key to IAM, and roles get all tags", "keep one of the two"
            )


@rule("ENV020", ERROR, on=Environment, source="tagging cfn-cluster", final=True)
def tag_count(environment: Environment) -> Problems:
    """Too many tags on a resource."""
    most = limits().cluster.tags - _OWN_TAGS
    if len(environment.tags) > most:
        yield Problem(
            "tags",
            f"{len(environment.tags)} tags; AWS takes {limits().cluster.tags} on a resource, and {_OWN_TAGS} are "
            f"kept for Name and what CloudFormation adds; allowed: {most}",
            "remove tags that no cost report uses",
        )


@rule("ENV021", ERROR, on=Environment, source="arn", final=True)
def partition(environment: Environment) -> Problems:
    """ARN from another partition."""
    try:
        own = region(environment.region).partition
    except UnknownRegion:
        return
    for path, arn in arns(environment):
        if arn.partition != own:
            yield Problem(
                path,
                f"{arn} belongs to partition {arn.partition}, and {environment.region} to {own}",
                "use a resource of the same one",
            )


@rule("ENV022", ERROR, on=Environment, source="arn kms-region training-plan-hyperpod", final=True)
def same_region(environment: Environment) -> Problems:
    """ARN from another region."""
    for path, arn in arns(environment):
        if arn.region not in ("", environment.region):
            yield Problem(
                path,
                f"{arn} is in {arn.region}, and the environment in {environment.region}",
                f"use one of {environment.region}; neither keys nor plans work across regions",
            )


@rule("ENV023", ERROR, on=Environment, source="iam-pass training-plan-hyperpod", final=True)
def same_account(environment: Environment) -> Problems:
    """ARN from another account that a service cannot use."""
    for path, arn in arns(environment):
        if arn.account not in ("aws", environment.account) and path[-1] in _PASSED:
            yield Problem(
                path,
                f"{arn} is in account {arn.account}, and the environment in {environment.account}",
                "use one of this account: services take no role, boundary or plan from elsewhere",
            )


@rule("ENV024", WARNING, on=Environment, source="kms-accounts")
def other_account(environment: Environment) -> Problems:
    """ARN from another account."""
    for path, arn in arns(environment):
        if arn.account not in ("", "aws", environment.account) and path[-1] not in _PASSED:
            yield Problem(
                path,
                f"{arn} is in account {arn.account}, and the environment in {environment.account}",
                "make sure that its policy trusts this account, and accept this",
            )


_PASSED = ("role", "autoscaling_role", "permissions_boundary", "arn")
