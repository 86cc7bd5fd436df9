"""Every construct and chart shows itself in at most ten lines, and the lines work.

An example is the block under `Example:` in a docstring. It knows the names of its own module and those that `given`
makes: `stack`, and things that most examples would only repeat.
"""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_type_hints

import aws_cdk as cdk
import cdk8s
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template
from pydantic import ValidationError

from podwright.config.catalog.instance_types import catalog
from podwright.config.errors import PodwrightError
from podwright.config.loading.project import Project
from podwright.constructs import library

ROOT = Path(__file__).parents[2]
LONGEST = 10
BASES = {"Construct", "Chart"}


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    """Module name and definition of every class in both rooms; folders of Lambda handlers hold none of either kind."""
    for folder in ("constructs", "cdk8s_charts"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            module = ".".join(("podwright", *file.relative_to(ROOT).with_suffix("").parts))
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef):
                    yield module, node


def example(node: ast.ClassDef) -> str | None:
    _, actual, block = (ast.get_docstring(node) or "").partition("\nExample:\n")
    lines = block.splitlines()
    end = next((number for number, line in enumerate(lines) if line and not line.startswith("    ")), len(lines))
    return textwrap.dedent("\n".join(lines[:end])).strip() if actual else None


def parts() -> list[tuple[str, ast.ClassDef]]:
    def named(base: ast.expr) -> str:
        return base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""

    return [(module, node) for module, node in classes() if BASES & set(map(named, node.bases))]


def given(stack: cdk.Stack, folder: Path) -> dict[str, Any]:
    """What examples may take for granted."""
    vpc = ec2.Vpc.from_vpc_attributes(
        stack,
        "GivenVpc",
        vpc_id="vpc-0123456789abcdef0",
        vpc_cidr_block="10.16.0.0/16",
        availability_zones=["us-west-2a", "us-west-2b"],
        private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
        private_subnet_route_table_ids=["rtb-0123456789abcdef0", "rtb-0123456789abcdef1"],
    )
    role = iam.Role.from_role_arn(stack, "GivenRole", "arn:aws:iam::111122223333:role/Given")
    cluster = eks.Cluster.from_cluster_attributes(
        stack,
        "GivenCluster",
        cluster_name="prod",
        kubectl_provider=eks.KubectlProvider.from_kubectl_provider_attributes(
            stack, "GivenKubectl", service_token="arn:aws:lambda:us-west-2:111122223333:function:given", role=role
        ),
    )
    bucket = s3.Bucket.from_bucket_name(stack, "GivenBucket", "sagemaker-given")
    group = ec2.SecurityGroup.from_security_group_id(stack, "GivenGroup", "sg-0123456789abcdef0")
    tools = lambda_.LayerVersion(stack, "GivenTools", code=lambda_.Code.from_bucket(bucket, "tools.zip"))
    control_plane = SimpleNamespace(cluster=cluster, tools=tools, subnets=vpc.private_subnets, security_group=group)
    folder.mkdir()
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: given\nversion: 0.1.0\n")
    return {
        "stack": stack,
        "folder": folder,
        "environment": Project.at(ROOT).load("prod").environment,
        "vpc": vpc,
        "subnet": vpc.private_subnets[0],
        "cluster": cluster,
        "control_plane": control_plane,
        "arn": "arn:aws:sagemaker:us-west-2:111122223333:cluster/0123456789ab",
        "catalog": catalog,
        **dict.fromkeys(("clients", "group", "nodes"), group),
        "key": kms.Key.from_key_arn(
            stack, "GivenKey", "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
        ),
        "bucket": bucket,
        "role": role,
    }


@pytest.mark.parametrize(("module", "node"), [pytest.param(*part, id=part[1].name) for part in parts()])
def test_example(
    module: str, node: ast.ClassDef, stack: cdk.Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = example(node)
    assert shown, f"{module}.{node.name} shows no example"
    assert len(shown.splitlines()) <= LONGEST
    names = vars(importlib.import_module(module)) | given(stack, tmp_path / "given")
    made = record(names[node.name], monkeypatch)
    exec(compile(shown, f"example of {node.name}", "exec"), names)
    assert made, "the example does not make what it is an example of"
    for chart in made:
        if isinstance(chart, cdk8s.Chart):
            assert cdk8s.Testing.synth(chart)
    Template.from_stack(stack)


def record(shown: type, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The instances of a class that are made from now on."""
    made: list[Any] = []
    define = shown.__init__

    def defined(self: Any, *args: Any, **keywords: Any) -> None:
        define(self, *args, **keywords)
        made.append(self)

    monkeypatch.setattr(shown, "__init__", defined)
    return made


def test_there_are_examples() -> None:
    assert {"EnvironmentNetwork", "LustreFileSystem"} <= {node.name for _, node in parts()}


EXPORTED = [part for part in parts() if part[1].name in library.__all__]


@pytest.mark.parametrize(("module", "node"), [pytest.param(*part, id=part[1].name) for part in EXPORTED])
def test_nonsense_is_refused_by_the_name_of_the_argument(
    module: str, node: ast.ClassDef, stack: cdk.Stack, tmp_path: Path
) -> None:
    """Each argument of each public construct is given what it cannot be: a finding, never an error of our insides."""
    names = vars(importlib.import_module(module)) | given(stack, tmp_path / "given")
    tree = ast.parse(example(node) or "")
    call = next(part for part in ast.walk(tree) if isinstance(part, ast.Call) and is_made(part, node.name))
    define = eval(ast.unparse(call.func), names)
    define = define.__init__ if isinstance(define, type) else define
    types, shown = get_type_hints(define), call.keywords
    values = {"int|bool": 3, "str": "text", "None|NoneType|Optional": None, "Stack": stack}
    for number, (name, word) in enumerate((name, word) for name in keyword_only(define) for word in values):
        own = cdk.Stack(stack.node.root, f"Nonsense{number}", env=stack_of(stack))
        replaced = [ast.keyword(name, ast.Name("nonsense", ast.Load()))]
        call.keywords = [keyword for keyword in shown if keyword.arg != name] + replaced
        refusal = refused(ast.unparse(tree), names | {"stack": own, "nonsense": values[word]})
        accepted = re.search(rf"\b({word})\b", str(types[name])) and not refusal
        assert accepted or name in refusal, f"{name} = {values[word]!r}: {refusal}"


def refused(source: str, names: dict[str, Any]) -> str:
    """What a refusal says; nothing where there is none. Every other error is a failure of the test."""
    try:
        exec(compile(source, "example", "exec"), names)
    except (PodwrightError, ValidationError) as error:
        return str(error)
    return ""


def is_made(call: ast.Call, name: str) -> bool:
    """Whether a call makes what is called `name`, by its class or by what the class makes it from."""
    return ast.unparse(call.func).partition(".")[0] == name


def keyword_only(define: Any) -> list[str]:
    parameters = inspect.signature(define).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]


def stack_of(stack: cdk.Stack) -> cdk.Environment:
    return cdk.Environment(account=stack.account, region=stack.region)


def test_there_are_public_constructs() -> None:
    assert {"HyperPodCluster", "TeamQuotas", "OpenZfsHome", "EksControlPlane"} <= {node.name for _, node in EXPORTED}
    assert len(EXPORTED) >= 20
