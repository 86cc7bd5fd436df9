"""What constructs say of what they are given: refusals of objects that cannot be built with, and warnings."""

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import wraps
from types import UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import aws_cdk as cdk
from constructs import Construct

from ...config.errors import InvalidSettings
from ...config.findings import Finding, Level

P = ParamSpec("P")
R = TypeVar("R")


def checked(define: Callable[P, R]) -> Callable[P, R]:
    """Refuse arguments that are not of their declared types, before anything is made of them.

    What a file says has been typed by the models; what Python says reaches a construct as it is, and would end as an
    error of the CDK or of our own insides. Settings are models already, so only their class is looked at.

    Raises:
        InvalidSettings: by the decorated function, with a finding for each of them.
    """
    names = list(inspect.signature(define).parameters)
    types: dict[str, Any] = {}

    @wraps(define)
    def call(*args: P.args, **keywords: P.kwargs) -> R:
        # Not earlier: a type may be defined further down in its module.
        types.update(types or get_type_hints(define))
        provided = {**dict(zip(names, args, strict=False)), **keywords}
        wrong = [
            finding
            for name, value in provided.items()
            if name in types and name not in ("scope", "construct_id")
            for finding in _misfits(name, value, types[name])
        ]
        if wrong:
            raise InvalidSettings(wrong)
        return define(*args, **keywords)

    return call


def _misfits(path: str, value: Any, expected: Any) -> Iterator[Finding]:
    """A finding for each value that is not of its type."""
    origin, inner = get_origin(expected), get_args(expected)
    if origin in (Union, UnionType):
        options = [option for option in inner if option is not type(None) or value is None]
        findings = [list(_misfits(path, value, option)) for option in options]
        if [] not in findings:
            yield from findings[0] if len(findings) == 1 else [_misfit(path, value, expected)]
    elif isinstance(origin, type) and issubclass(origin, Collection):
        if isinstance(value, str) or not isinstance(value, _collection(origin)):
            yield _misfit(path, value, expected)
            return
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in items:
            yield from _misfits(f"{path}.{key}", item, inner[-1])
    elif not _fits(value, expected):
        yield _misfit(path, value, expected)


def _collection(origin: type) -> type:
    # Whether a list, a tuple or a set comes is all the same to a construct.
    return Mapping if issubclass(origin, Mapping) else Collection


def _fits(value: Any, expected: Any) -> bool:
    """Whether a value is one of a Literal, has what an interface has, or is an instance of a class."""
    if get_origin(expected) is Literal:
        return value in get_args(expected)
    if expected is Any or not isinstance(expected, type):
        return True
    if not getattr(expected, "_is_protocol", False):
        return isinstance(value, expected)
    # An id or an ARN tells interfaces apart; Node would be asked for each thing more.
    annotated = {name for base in expected.__mro__ for name in inspect.get_annotations(base)}
    members = [name for name in {*dir(expected), *annotated} if re.fullmatch(r"[a-z].*_(id|arn|name)", name)]
    return not members or _has(value, min(members, key=lambda name: (len(name), name)))


def _has(value: Any, name: str) -> bool:
    return inspect.getattr_static(value, name, None) is not None or hasattr(value, name)


def _misfit(path: str, value: Any, expected: Any) -> Finding:
    shown = repr(value) if isinstance(value, str | int | float) else _shown(value)
    allowed = _kind(expected)
    return Finding("ENV003", Level.ERROR, path, f"{path} is {shown}; allowed: {allowed}", f"pass {allowed}")


def _kind(expected: Any) -> str:
    """A type as people write it in an app: `ec2.IVpc`, `Lustre`, a list of such, or the allowed words."""
    origin, inner = get_origin(expected), get_args(expected)
    if origin is Literal:
        return ", ".join(map(str, inner))
    if origin in (Union, UnionType):
        return " or ".join(_kind(option) for option in inner if option is not type(None))
    if isinstance(origin, type) and issubclass(origin, Collection):
        return f"a {_collection(origin).__name__.lower()} of {_kind(inner[-1])}"
    library, _, module = getattr(expected, "__module__", "").partition(".")
    name = getattr(expected, "__name__", str(expected))
    return f"{module.removeprefix('aws_')}.{name}" if library == "aws_cdk" and module else name


def refusal(path: str, message: str, hint: str, rule: str = "ENV003") -> InvalidSettings:
    """What is raised for one argument that cannot be built with."""
    return InvalidSettings([Finding(rule, Level.ERROR, path, message, hint)])


def annotate(construct: Construct, findings: Iterable[Finding]) -> None:
    """Show warnings that nobody has accepted as annotations, which the CDK prints and lets people acknowledge."""
    for finding in findings:
        if finding.level is Level.WARNING and finding.acknowledged is None:
            text = f"{finding.path}: {finding.message}; {finding.hint}"
            cdk.Annotations.of(construct).add_warning_v2(f"podwright:{finding.id}", text)


def _shown(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
