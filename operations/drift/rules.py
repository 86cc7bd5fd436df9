"""Rules of security groups: what templates ask for, and what EC2 has."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..aws.account import Account
from ..aws.calls import pages
from ..effects.templates import Template, resources
from .resolve import Resolver, Unknown

GROUP: Final = "AWS::EC2::SecurityGroup"
_WAYS: Final = {"AWS::EC2::SecurityGroupIngress": "ingress", "AWS::EC2::SecurityGroupEgress": "egress"}
_PEERS: Final = (
    *("CidrIp", "CidrIpv6", "SourceSecurityGroupId", "DestinationSecurityGroupId"),
    *("SourcePrefixListId", "DestinationPrefixListId"),
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: which way, what, and to or from whom."""

    way: str
    what: str
    peer: str | None
    """None where only the deployment knew it: such a rule is any rule that is like it otherwise."""
    optional: bool = field(default=False, compare=False)
    """Whether it may be missing, as the rule that EC2 gives a group for which nobody says where it may go."""

    def __str__(self) -> str:
        return f"{self.way} {self.what} {self.peer or 'of a peer that is not known here'}"


@dataclass(frozen=True, slots=True)
class Group:
    """A security group as the templates ask for it."""

    stack: str
    logical_id: str
    rules: list[Rule]


def wanted(templates: Mapping[str, Template], resolver: Resolver) -> dict[str, Group]:
    """The groups that the templates ask for, by id."""
    results: dict[str, Group] = {}
    items = [(stack, key, item) for stack, template in templates.items() for key, item in resources(template)]
    for stack, key, item in items:
        if item["Type"] == GROUP and (group := _id_of(resolver, stack, key)):
            own = resolver.value(item.get("Properties", {}), stack)
            rules = [_rule("ingress", rule) for rule in own.get("SecurityGroupIngress", ())]
            silent = [Rule("egress", "all", "0.0.0.0/0", optional=True)]
            rules += (
                [_rule("egress", rule) for rule in own["SecurityGroupEgress"]]
                if "SecurityGroupEgress" in own
                else silent
            )
            results[group] = Group(stack, key, rules)
    for stack, _, item in items:
        if way := _WAYS.get(item["Type"]):
            own = resolver.value(item["Properties"], stack)
            # Rules for groups of other stacks belong to what those stacks say.
            if own["GroupId"] in results:
                results[own["GroupId"]].rules.append(_rule(way, own))
    return results


def _id_of(resolver: Resolver, stack: str, key: str) -> str | None:
    return None if "/" in stack else resolver.physical_ids(stack).get(key)


def _rule(way: str, rule: Mapping[str, Any]) -> Rule:
    peer = next((rule[key] for key in _PEERS if key in rule), None)
    return Rule(way, _what(rule), None if isinstance(peer, Unknown) else peer)


def _what(rule: Mapping[str, Any]) -> str:
    protocol = str(rule["IpProtocol"])
    first, last = rule.get("FromPort", -1), rule.get("ToPort", -1)
    if protocol == "-1":
        return "all"
    return f"{protocol} {first}" if first == last else f"{protocol} {first}-{last}"


def live(account: Account, groups: list[str]) -> dict[str, list[Rule]]:
    """The rules that groups have, by their ids."""
    results: dict[str, list[Rule]] = {group: [] for group in groups}
    filters = [{"Name": "group-id", "Values": groups}]
    # One call for all groups.
    for row in pages(account, "ec2", "describe_security_group_rules", "SecurityGroupRules", Filters=filters):
        if row["GroupId"] not in results:
            continue
        # A rule has one peer, which stands in another field for each kind.
        peer = row.get("CidrIpv4") or row.get("CidrIpv6") or row.get("PrefixListId")
        peer = peer or row.get("ReferencedGroupInfo", {}).get("GroupId")
        results[row["GroupId"]].append(Rule("egress" if row["IsEgress"] else "ingress", _what(row), peer))
    return results


def unlike(asked: list[Rule], rules: list[Rule]) -> Iterator[tuple[str, Rule]]:
    """Rules that are `gone`, and those that somebody `added`."""
    left = list(rules)
    # Rules with a known peer first: one without may fit several.
    for rule in sorted(asked, key=lambda rule: rule.peer is None):
        match = next((other for other in left if _fits(rule, other)), None)
        if match is None:
            # Two resources may ask for one rule; EC2 keeps it once.
            if not rule.optional and not any(_fits(rule, other) for other in rules):
                yield "gone", rule
        else:
            left.remove(match)
    for rule in left:
        if not any(_fits(other, rule) for other in asked):
            yield "added", rule


def _fits(rule: Rule, other: Rule) -> bool:
    return (rule.way, rule.what) == (other.way, other.what) and rule.peer in (None, other.peer)
