"""Mutated environment files: the real ones, edited as a person in a hurry or with a plan might edit them.

A seed always gives the same file while `environments/` and the settings models stay as they are.
"""

import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from podwright.config.catalog.instance_types import catalog
from podwright.config.errors import InvalidFile
from podwright.config.findings import errors
from podwright.config.loading.load import environment_from
from podwright.config.loading.project import Project
from podwright.config.loading.source import parse_source
from podwright.config.settings.base import Settings
from podwright.config.settings.environment import Environment
from podwright.planning.rules import findings

ROOT = Path(__file__).parents[2]
_ROLE = "arn:aws:iam::111122223333:role/path/Role"
_KEYS = (
    "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef",
    "arn:aws:kms:us-east-1:444455556666:key/mrk-0123456789abcdef0123456789abcdef",
)
_ZONES = (
    "usw2-az1",
    "usw2-az2",
    "usw2-az3",
    "usw2-az4",
    "use1-az4",
    "use1-az6",
    "use2-az1",
    "usw2-phx2-az1",
    "us-west-2a",
)
_CIDRS = (
    "10.16.0.0/16",
    "10.16.0.0/20",
    "10.16.96.0/20",
    "10.16.104.0/21",
    "100.64.0.0/16",
    "192.168.0.0/18",
    "10.0.0.1/16",
)
_TYPES = (
    *(
        "ml.m5.4xlarge",
        "ml.m5.large",
        "ml.t3.medium",
        "ml.m7g.4xlarge",
        "ml.c5n.18xlarge",
        "ml.g5.12xlarge",
        "ml.p5.48xlarge",
    ),
    *("ml.p5en.48xlarge", "ml.p6-b200.48xlarge", "ml.p6e-gb200.36xlarge", "ml.trn1.32xlarge", "ml.p9.48xlarge"),
)
# Values that fit a field of that name, most of them; the rest is what people write instead.
_BY_NAME: dict[str, tuple[Any, ...]] = {
    "account": ("111122223333", "011122223333", "444455556666", "1111"),
    "region": ("us-west-2", "us-east-1", "us-east-2", "eu-west-3", "us-west-9"),
    "name": ("prod", "blue", "a-name-of-thirty-two-characters-x", "Prod"),
    "id": ("vpc-0123456789abcdef0", "fs-0123456789abcdef0"),
    "zone": _ZONES,
    "zones": _ZONES,
    "cidr": _CIDRS,
    "secondary_cidrs": _CIDRS[4:],
    "public_cidrs": ("198.51.100.0/24", "0.0.0.0/0", "10.0.0.0/8"),
    "public": _CIDRS,
    "control_plane": (*_CIDRS, "subnet-0000000000000002"),
    "nodes": (*_CIDRS, "subnet-0000000000000001"),
    "nodes_cidr": _CIDRS,
    "subnet_ids": ("subnet-0000000000000001", "subnet-0000000000000009"),
    "security_group": ("sg-0123456789abcdef0",),
    "instance_type": _TYPES,
    "instance_types": _TYPES,
    "role": (_ROLE, "arn:aws:iam::444455556666:role/Role"),
    "autoscaling_role": (_ROLE,),
    "kubectl_role": (_ROLE,),
    "admins": (_ROLE, "arn:aws:iam::111122223333:role/Other"),
    "kms_key": _KEYS,
    "root_kms_key": _KEYS,
    "secrets_key": _KEYS,
    "permissions_boundary": tuple(f"arn:{each}:iam::111122223333:policy/Boundary" for each in ("aws", "aws-cn")),
    "role_path": ("/", "/podwright/", "podwright"),
    "arn": tuple(f"arn:aws:sagemaker:{region}:111122223333:training-plan/q1" for region in ("us-west-2", "us-east-1")),
    "training_plan": ("h200-q1", "gb200", "q1"),
    "ultraserver_type": ("ml.u-p6e-gb200x36", "ml.u-p6e-gb200x72", "ml.u-p7"),
    "lifecycle": ("sagemaker-acme", "acme-scripts"),
    "checkpoints": ("acme-checkpoints", "acme..checkpoints"),
    "s3": ("s3://acme-datasets", "s3://acme-out/a", "s3://acme-out/b"),
    "source": ("s3://sagemaker-acme/scripts", "s3://acme/scripts"),
    "path": ("/datasets", "/datasets/raw", "/a", "instance_groups"),
    "mount": ("/fsx", "/home", "/scratch", "/scratch/x", "/opt/sagemaker"),
    "mount_name": ("abcdefgh", "fsx"),
    "capacity_gib": (1200, 2400, 4800, 9600, 19200, 38400, 512, 3600),
    "throughput": (125, 250, 500, 1000, 160, 320, 400),
    "throughput_capacity": (4000, 8000, 5000),
    "size_gib": (100, 500, 16384, 20000),
    "metadata_iops": ("automatic", 1500, 6000, 12000, 24000, 7000),
    "count": (0, 1, 2, 3, 4, 9, 16, 18, 64, 2000),
    "min_count": (0, 1, 2, 20),
    "version": ("1.34", "1.33", "1.30", "1.36", "1.27", "2.12", "2.15"),
    "schedule": ("cron(0 4 ? * SUN *)", "cron(0 4 * * ? *)", "cron(0 4)"),
    "batch": ("1", "2", "20%", "100%", "150%"),
    "rollback_batch": ("1", "50%"),
    "maintenance": ("7:04:00", "8:00:00"),
    "start": ("05:00", "5:00", "2027-01-04", "2027-01-04T11:30Z"),
    "end": ("2027-02-01T11:30Z", "2027-01-01", "2027-02-30"),
    "start_after": ("2027-01-04", "2027-01-04T12:30+01:00", "tomorrow"),
    "end_before": ("2027-01-11", "2027-03-04", "20270304"),
    "days": (1, 7, 28, 182, 200),
    "max_upfront_usd": (900000, 0),
    "paid_usd": (473088, 0),
    "rule": ("NET010", "STO014", "STO026", "GRP003", "XYZ123"),
    "reason": ("we know and accept that", "short"),
    "key": ("dedicated", "nvidia.com/gpu", "node.kubernetes.io/x"),
    "value": ("x", "research"),
    "image_id": ("ami-0123456789abcdef0",),
    "image_release": ("1.2.3",),
    "system_group": ("system", "h200", "controller"),
    "engine": ("hyperpod", "kueue", "kai", "yunikorn", "volcano"),
    "department": ("science", "vision"),
    "parent": ("science", "vision"),
    "weight": (0, 1, 60, 101),
    "instances": (0, 1, 2, 40),
    "accelerators": (0, 1, 8, 12, 999),
    "vcpu": (0, 4.5, 96),
    "memory_gib": (0, 512),
    "on_create": ("on_create.sh", "scripts/on_create.sh"),
    "on_init_complete": ("after.sh",),
    "rollback_alarms": ("too-many-errors",),
}  # fmt: skip
_KEYS_OF: dict[str, tuple[str, ...]] = {
    "labels": ("team", "example.com/team", "sagemaker.amazonaws.com/x", "a" * 70),
    "tags": ("team", "Team", "aws:x", "cost-center"),
    "subnets": _ZONES[:4],
    "training_plans": ("h200-q1", "gb200", "q1"),
    "additional_lustre": ("scratch", "lustre"),
    "instance_groups": ("system", "h200", "more", "b_d"),
    "restricted_instance_groups": ("nova", "h200"),
    "instance_types": ("ml.p5.48xlarge", "ml.new.48xlarge"),
    "addons": ("vpc-cni", "coredns", "cni"),
    "departments": ("science", "vision"),
    "teams": ("research", "product", "team-a", "Team"),
    "quota": ("h200", "training", "h100", "ml.p5.48xlarge", "ml.p5en.48xlarge"),
    "borrow_limits": ("h200", "training", "h100", "ml.p5.48xlarge"),
    "mig": ("mig-1g.18gb", "mig-1g.10gb", "mig-1g.34gb", "mig-9g"),
    "priorities": ("training", "inference", "Training"),
}
_ODD = (None, "", "off", "1.30", "-1", "0", "999999999", "x" * 70, [], {}, ["a"], {"a": "b"}, "é", "null", "true")
_SCRIBBLES = (
    "{",
    "}",
    "[",
    "]",
    ":",
    "- ",
    "&a ",
    "*a",
    "!x ",
    "\t",
    "\n",
    '"',
    "'",
    "|",
    "#",
    "<<: *a",
    "---\n",
    "\x00",
    "  ",
)


@dataclass(frozen=True)
class Mutation:
    """One mutated file."""

    seed: int
    origin: str
    """The environment that it was."""
    text: str


@dataclass(frozen=True)
class Outcome:
    """What became of a mutated file."""

    seconds: float
    environment: Environment | None
    """None when it is no environment."""
    passed: bool
    """Whether no rule stops it."""


def mutation(seed: int) -> Mutation:
    """The mutated file of that seed."""
    chance = random.Random(seed)
    origin = chance.choice(sorted(_texts()))
    if chance.random() < 0.2:
        return Mutation(seed, origin, _scribbled(_texts()[origin], chance))
    data = parse_source(_texts()[origin], origin).data
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3))):
        chance.choice((_change, _change, _add, _add, _add, _drop, _misspell, _copy_group))(data, chance)
    return Mutation(seed, origin, json.dumps(data, indent=1, ensure_ascii=False))


def examine(mutated: Mutation) -> Outcome:
    """Load a mutated file and run all rules, as `podwright check` does. Anything that is raised is a bug."""
    start = time.process_time()  # the machine may be busy
    try:
        loaded = environment_from(parse_source(mutated.text, f"{mutated.origin}.yaml"), mutated.origin)
    except InvalidFile:
        return Outcome(time.process_time() - start, None, False)
    resolved_findings = findings(loaded.environment, loaded.source)
    return Outcome(time.process_time() - start, loaded.environment, not errors(resolved_findings))


@cache
def _texts() -> dict[str, str]:
    """The files of the project; what extends others with them below it, as one file."""
    project = Project.at(ROOT)
    sources = {name: project.source(name) for name in project.names}
    return {
        name: json.dumps(source.data, indent=1)
        if len(source.files) > 1
        else (ROOT / "environments" / f"{name}.yaml").read_text()
        for name, source in sources.items()
    }


def _scribbled(text: str, chance: random.Random) -> str:
    letters = list(text)
    for _ in range(chance.randint(1, 3)):
        position = chance.randrange(len(letters))
        match chance.randrange(3):
            case 0:
                del letters[position : position + chance.randint(1, 8)]
            case 1:
                letters.insert(position, chance.choice(_SCRIBBLES))
            case _:
                letters[position] = chr(chance.randrange(32, 127))
    return "".join(letters)


def _mappings(data: Any, model: Any) -> Iterator[tuple[dict[str, Any], type[Settings]]]:
    """Every mapping of a file that a settings model describes, with the model."""
    if isinstance(data, dict) and isinstance(model, type) and issubclass(model, Settings):
        yield data, model
        for name, field in model.model_fields.items():
            key = field.alias or name
            for inner in _models(field.annotation):
                below = data.get(key)
                for item in below.values() if _is_dict(field.annotation) and isinstance(below, dict) else [below]:
                    yield from _mappings(item, inner)


def _models(annotation: Any) -> list[Any]:
    if isinstance(annotation, type) and issubclass(annotation, Settings):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models(argument)]


def _is_dict(annotation: Any) -> bool:
    return get_origin(annotation) is dict


def _change(data: Any, chance: random.Random) -> None:
    mapping, model = chance.choice([pair for pair in _mappings(data, Environment) if pair[0]])
    key = chance.choice(sorted(mapping))
    mapping[key] = chance.choice(_ODD) if chance.random() < 0.2 else _for_key(key, model, chance)


def _add(data: Any, chance: random.Random) -> None:
    mapping, model = chance.choice(list(_mappings(data, Environment)))
    absent = [name for name, field in model.model_fields.items() if (field.alias or name) not in mapping]
    if absent:
        name = chance.choice(absent)
        mapping[model.model_fields[name].alias or name] = _for_key(name, model, chance)


def _drop(data: Any, chance: random.Random) -> None:
    mapping, _ = chance.choice([pair for pair in _mappings(data, Environment) if pair[0]])
    del mapping[chance.choice(sorted(mapping))]


def _misspell(data: Any, chance: random.Random) -> None:
    if chance.random() < 0.3:
        mapping, _ = chance.choice([pair for pair in _mappings(data, Environment) if pair[0]])
        key = chance.choice(sorted(mapping))
        mapping[key[:-1] + chance.choice("abcxyz_")] = mapping.pop(key)


def _copy_group(data: Any, chance: random.Random) -> None:
    groups = data.get("instance_groups") if isinstance(data, dict) else None
    if isinstance(groups, dict) and groups:
        group = groups[chance.choice(sorted(groups))]
        groups[f"copy-{len(groups)}"] = dict(group) if isinstance(group, dict) else group


def _for_key(key: str, model: type[Settings], chance: random.Random) -> Any:
    fields = {field.alias or name: (name, field) for name, field in model.model_fields.items()}
    name, field = fields.get(key) or (key, model.model_fields.get(key))
    return _value(name, field.annotation, chance) if field else chance.choice(_ODD)


def _value(name: str, annotation: Any, chance: random.Random) -> Any:
    """A value of the kind that a field takes, fitting it more often than not."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _value(name, arguments[0], chance)
    if origin in (Union, UnionType):
        return _value(name, chance.choice([kind for kind in arguments if kind is not type(None)]), chance)
    if origin is Literal:
        return chance.choice(arguments)
    if origin is tuple:
        return [_value(name, arguments[0], chance) for _ in range(chance.choice((0, 1, 1, 2, 3)))]
    if origin is dict:
        keys = chance.sample(_KEYS_OF.get(name, ("a", "b")), chance.choice((0, 1, 1, 2)))
        return {key: _value(name, arguments[1], chance) for key in keys}
    if isinstance(annotation, type) and issubclass(annotation, Settings):
        return {
            field.alias or inner: _value(inner, field.annotation, chance)
            for inner, field in annotation.model_fields.items()
            if field.is_required() or chance.random() < 0.25
        }
    if annotation is bool:
        return chance.choice(("true", "false"))
    if name == "instance_type" and chance.random() < 0.3:
        return chance.choice([row.name for row in catalog()])
    if name in _BY_NAME:
        return chance.choice(_BY_NAME[name])
    return chance.choice((0, 1, 7, 20, 50, 100)) if annotation is int else chance.choice(("x", "research", "a-b"))
