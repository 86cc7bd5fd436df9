"""Which permissions a change set gives and takes: statements of policies, and rules of security groups."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .changes import ResourceChange
from .compare import canonical

_POLICIES: Final = ("PolicyDocument", "AssumeRolePolicyDocument", "KeyPolicy", "ResourcePolicy")
_RULES: Final = {"AWS::EC2::SecurityGroupIngress": "ingress", "AWS::EC2::SecurityGroupEgress": "egress"}
_WIDE: Final = ("0.0.0.0/0", "::/0")


def permissions(changes: Sequence[ResourceChange]) -> list[dict[str, Any]]:
    """Every statement and rule that comes or goes: who, what, and whether it opens to everybody."""
    results = []
    for change in changes:
        old, new = (list(_grants(change.type, side)) if side else [] for side in (change.old, change.new))
        before, after = {canonical(item) for item in old}, {canonical(item) for item in new}
        for sign, items, others in (("+", new, before), ("-", old, after)):
            results += [
                {"sign": sign, "resource": change.name, **item} for item in items if canonical(item) not in others
            ]
    return results


def _grants(kind: str, properties: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What the properties of a resource permit, each with `wide`: whether that is everything, or for everybody."""
    for name in _POLICIES:
        yield from _statements(properties.get(name))
    # Managed policies have their document among _POLICIES; those inside of a role are a list of their own.
    for policy in properties.get("Policies", ()) if kind == "AWS::IAM::Role" else ():
        yield from _statements(policy.get("PolicyDocument"))
    for arn in properties.get("ManagedPolicyArns", ()) if kind.startswith("AWS::IAM::") else ():
        yield {"kind": "managed policy", "what": text(arn), "wide": "AdministratorAccess" in text(arn)}
    if kind == "AWS::EKS::AccessEntry":
        for policy in properties.get("AccessPolicies", ()):
            yield {"kind": "EKS access", "what": text(policy), "wide": "ClusterAdmin" in text(policy)}
    if kind in _RULES:
        yield _rule(_RULES[kind], properties)
    for name, word in (("SecurityGroupIngress", "ingress"), ("SecurityGroupEgress", "egress")):
        for rule in properties.get(name, ()) if kind == "AWS::EC2::SecurityGroup" else ():
            yield _rule(word, rule)


def _rule(word: str, rule: Mapping[str, Any]) -> dict[str, Any]:
    peers = ("CidrIp", "CidrIpv6", "SourceSecurityGroupId", "DestinationSecurityGroupId")
    peer = next((rule[key] for key in (*peers, "SourcePrefixListId", "DestinationPrefixListId") if key in rule), "?")
    first, last = rule.get("FromPort"), rule.get("ToPort")
    # Rules for ICMP and for all protocols have no ports.
    span = f" {first}" if first == last else f" {first}-{last}"
    ports = "" if first is None else span
    what = f"{'all' if str(rule.get('IpProtocol')) == '-1' else rule.get('IpProtocol')}{ports} {text(peer)}"
    return {"kind": word, "what": what, "wide": word == "ingress" and peer in _WIDE}


def _statements(document: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(document, Mapping):
        return
    statements = document.get("Statement", ())
    # A policy of one statement may hold it without a list around it.
    for item in [statements] if isinstance(statements, Mapping) else statements:
        actions = _listed(item.get("Action", item.get("NotAction", ())))
        targets = _listed(item.get("Resource", item.get("Principal", ())))
        condition = f" if {text(item['Condition'])}" if "Condition" in item else ""
        what = f"{', '.join(actions)} on {', '.join(targets) or 'itself'}{condition}"
        # A condition narrows even an asterisk, and how far only a person can say.
        wide = item.get("Effect") == "Allow" and not condition and ("*" in actions or "*" in targets)
        yield {"kind": item.get("Effect", "?").lower(), "what": what, "wide": wide}


def _listed(value: Any) -> list[str]:
    if not value:
        return []
    return [text(item) for item in (value if isinstance(value, list) else [value])]


def text(value: Any) -> str:
    """A value as people read it: what functions of CloudFormation fill in goes by the name of its source."""
    match value:
        case str():
            return value
        case {"Ref": name}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"${{{name}.{attribute}}}"
        case {"Fn::ImportValue": str() as name}:
            return f"${{{name}}}"
        case {"Fn::Join": [str() as between, list() as parts]}:
            return between.join(map(text, parts))
        case _:
            return canonical(value)
