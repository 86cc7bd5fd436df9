"""Checks of images of nodes and containers, and of secrets and topics that nodes read."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...config.findings import listed
from ...config.loading.artifacts import read_artifacts
from ...config.settings.observability import ExistingGrafana, Grafana
from ...planning.helm.mirrors import mirror_of
from ...planning.rules.framework.rule import Problem
from ...planning.rules.groups.groups import known
from .check import Answers, Ask, Note, check
from .shared import cluster, own_groups

# States from which a workspace takes dashboards, at the latest when a change that is under way has ended.
_DELIVERABLE: Final = ("ACTIVE", "UPDATING", "UPGRADING", "VERSION_UPDATING")
# Source: Amazon Managed Grafana API, CreateWorkspaceServiceAccount, botocore 1.44.5.
_SERVICE_ACCOUNTS_FROM: Final = 9


@check("PRE070")
def custom_images(ask: Ask) -> Answers:
    """Custom AMIs: that they are there, available, and of the types' architecture."""
    named = {(*path, "image_id"): group for path, group in own_groups(ask.environment) if group.image_id}
    if not named:
        return
    ids = sorted({group.image_id for group in named.values() if group.image_id})
    rows = ask.aws.pages("ec2", "describe_images", "Images", Filters=[{"Name": "image-id", "Values": ids}])
    existing = {row["ImageId"]: row for row in rows}
    for path, group in named.items():
        image = existing.get(group.image_id or "")
        if image is None:
            yield Problem(
                path,
                f"there is no image {group.image_id} in {ask.environment.region} that this account may use",
                "copy the image to the region, or correct its id",
            )
            continue
        architectures = {row.architecture for row in known(group, ask.types)}
        if image["State"] != "available":
            yield Problem(path, f"{group.image_id} is {image['State']}", "wait until it is available")
        if architectures and image["Architecture"] not in architectures:
            yield Problem(
                path,
                f"{group.image_id} is for {image['Architecture']}, and the group's types are {min(architectures)}",
                f"build it on HyperPod's image for {min(architectures)}",
            )
        disks = [mapping["Ebs"] for mapping in image.get("BlockDeviceMappings", []) if "Ebs" in mapping]
        if any(disk.get("Encrypted") for disk in disks) and not group.root_kms_key:
            yield Problem(
                path,
                f"{group.image_id} has an encrypted snapshot, and the group names no key for its root volume",
                "name the snapshot's key as root_kms_key, or copy the image without encryption",
            )
        yield Note(f"{group.image_id}")


@check("PRE071")
def releases(ask: Ask) -> Answers:
    """The image's release in the file, and the one that nodes have."""
    existing = cluster(ask)
    if existing is None:
        return
    rows = {row["InstanceGroupName"]: row for row in existing.get("InstanceGroups", [])}
    for path, group in own_groups(ask.environment):
        row = rows.get(str(path[-1]), {})
        current, status = row.get("CurrentImageReleaseVersion"), row.get("ImageVersionStatus")
        if group.image_release and current and group.image_release != current:
            older = _parts(group.image_release) < _parts(current)
            yield Problem(
                (*path, "image_release"),
                f"nodes of {path[-1]} have release {current}, the file has {group.image_release}: a deployment gives "
                f"them {'an older image' if older else 'a new image'}, without batches",
                "continue when that is meant; else write the release that they have",
            )
        elif status in ("SecurityUpdateRequired", "EndOfLife"):
            yield Problem(
                path,
                f"the image of {path[-1]} is {status}{f' (release {current})' if current else ''}",
                "name a newer image_release, or set `patching`",
            )
        elif row:
            yield Note(f"{path[-1]}: {current or status or 'no release told'}")


@check("PRE072")
def mirrored(ask: Ask) -> Answers:
    """The copies of images in the account's registry from which a closed network pulls, by their digests."""
    if ask.environment.network.endpoints != "closed" or ask.environment.cluster.orchestrator != "eks":
        return
    mirror = mirror_of(ask.environment, read_artifacts(ask.project))
    for original, image in mirror.items():
        result = ask.aws.find(
            "ecr",
            "describe_images",
            {"RepositoryNotFoundException", "ImageNotFoundException"},
            repositoryName=image.repository,
            imageIds=[{"imageDigest": image.digest}],
        )
        if result is None:
            yield Problem(
                ("network", "endpoints"),
                f"{image} is not in the registry, so nodes of a closed network cannot pull {original}",
                f"run `podwright images mirror {ask.environment.name}`",
            )
    if mirror:
        yield Note(f"{len(mirror)} images")


@check("PRE073")
def secrets(ask: Ask) -> Answers:
    """The secret of an existing accounting database, and the topic that hears of controllers that fail over."""
    if ask.environment.cluster.orchestrator != "slurm":
        return
    slurm, path = ask.environment.cluster.slurm, ("cluster", "slurm")
    database = slurm.accounting.existing if slurm.accounting else None
    if database:
        absent = {"ResourceNotFoundException"}
        result = ask.aws.find("secretsmanager", "describe_secret", absent, SecretId=database.secret)
        if result is None or result.get("DeletedDate"):
            yield Problem(
                (*path, "accounting", "existing", "secret"),
                f"secret {database.secret} is {'to be deleted' if result else 'not there'}",
                "correct its ARN, or restore it: the controller reads its password from it",
            )
        else:
            yield Note("the database's secret")
    if slurm.failover_topic:
        absent = {"NotFound", "NotFoundException"}
        if ask.aws.find("sns", "get_topic_attributes", absent, TopicArn=slurm.failover_topic) is None:
            yield Problem(
                (*path, "failover_topic"), f"there is no topic {slurm.failover_topic}", "create it, or correct its ARN"
            )
        else:
            yield Note("the topic")


def _parts(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".") if part.isdigit())


@check("PRE074")
def workspace(ask: Ask) -> Answers:
    """The existing Prometheus workspace that metrics go to."""
    settings = ask.environment.observability
    if settings is None or settings.workspace is None:
        return
    result = ask.aws.find("amp", "describe_workspace", {"ResourceNotFoundException"}, workspaceId=settings.workspace)
    status = result["workspace"]["status"]["statusCode"] if result else "not there"
    if status not in ("ACTIVE", "UPDATING"):
        yield Problem(
            ("observability", "workspace"),
            f"workspace {settings.workspace} is {status} in {ask.environment.region}",
            "correct its id, or remove it for a workspace of the environment's own",
        )
    else:
        yield Note(f"workspace {settings.workspace}")


@check("PRE075")
def identity_center(ask: Ask) -> Answers:
    """IAM Identity Center, by which people sign in to Managed Grafana."""
    settings = ask.environment.observability
    grafana = settings.managed_grafana if settings else None
    if grafana is None or grafana.saml or grafana.existing:
        return
    instances = ask.aws.pages("sso-admin", "list_instances", "Instances")
    active = [each for each in instances if each.get("Status", "ACTIVE") == "ACTIVE"]
    if not active:
        yield Problem(
            ("observability", "grafana"),
            f"{ask.environment.region} shows no active instance of IAM Identity Center, by which people sign in to "
            "Managed Grafana; the workspace would fail late, and take its stack back with it",
            "enable IAM Identity Center, write `saml`, or `grafana: false` for dashboards in CloudWatch; accept this "
            "where your organization has its instance in another region",
        )
    else:
        names = [each["InstanceArn"].rpartition("/")[2] for each in active]
        yield Note(f"IAM Identity Center {', '.join(names)}")


@check("PRE077")
def grafana_workspace(ask: Ask) -> Answers:
    """The existing Grafana workspace that dashboards are delivered to."""
    settings = ask.environment.observability
    grafana = settings.managed_grafana if settings else None
    if grafana is None or grafana.existing is None:
        return
    named = grafana.existing
    answer = ask.aws.find("grafana", "describe_workspace", {"ResourceNotFoundException"}, workspaceId=named.id)
    result = answer["workspace"] if answer else {}
    status = result.get("status", "not there")
    if status not in _DELIVERABLE:
        yield Problem(
            ("observability", "grafana", "existing", "id"),
            f"workspace {named.id} is {status} in {ask.environment.region}",
            "correct its id, bring it to ACTIVE, or remove `existing`, so that podwright creates a workspace",
        )
    if not result:
        return
    yield from _grafana_problems(grafana, named, result)
    yield Note(f"workspace {named.id}, Grafana {result['grafanaVersion']}")


def _grafana_problems(grafana: Grafana, named: ExistingGrafana, result: Mapping[str, Any]) -> Iterator[Problem]:
    """What keeps dashboards from a workspace that is there."""
    path = ("observability", "grafana")
    version, role = result["grafanaVersion"], result.get("workspaceRoleArn")
    if _parts(version)[:1] < (_SERVICE_ACCOUNTS_FROM,):
        yield Problem(
            (*path, "existing", "id"),
            f"{named.id} has Grafana {version}; dashboards need a service account, which exists from "
            f"version {_SERVICE_ACCOUNTS_FROM} on",
            "update the workspace first",
        )
    if role != named.role:
        yield Problem(
            (*path, "existing", "role"),
            f"{named.id} asks its sources with {role or 'no role'}, and the file says {named.role}, which would get "
            "the permissions",
            "write the workspace's own role",
        )
    providers = result["authentication"]["providers"]
    if any(grafana.groups.values()) and "AWS_SSO" not in providers:
        field = next(name for name in ("admins", "editors", "viewers") if getattr(grafana, name))
        yield Problem(
            (*path, field),
            f"people sign in to {named.id} by {listed(providers, 'and') or 'nothing'}, which knows no groups of IAM "
            "Identity Center",
            f"remove {field}, or turn IAM Identity Center on for the workspace",
        )
    if result.get("networkAccessControl"):
        yield Problem(
            (*path, "existing", "id"),
            f"{named.id} lets only named addresses and endpoints in, and the function that delivers dashboards has "
            "none of them",
            "open the workspace to all addresses (a token guards it), or use `grafana: false` and `podwright "
            "dashboards export`",
        )
