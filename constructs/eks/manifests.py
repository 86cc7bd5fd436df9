"""Kubernetes objects that a deployment applies, keeps and removes."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from ...config.catalog.kubernetes_groups import TEAM_LABEL

# CloudFormation sends the new and the old properties to Lambda in one asynchronous event of at most 1 MB. Source: AWS
# Lambda Developer Guide, "Lambda quotas", 2026-11. Two of these fit with room for what wraps them.
_MOST_BYTES: Final = 200_000
# A template holds 1 MB and 500 resources; 200 teams with queues of 8 groups fill a quarter of four. The number can
# never change: a team in another stack would be deleted from the one that it was in.
_NESTED: Final = 4


class Manifests(Construct):
    """Kubernetes objects applied by the kubectl provider of a cluster, in pieces that are custom resources.

    What belongs to a team (label `podwright/team`) is one piece, in the order given, so a change of one team shows as
    one change and a failure names the team. Every other object is a piece of its own and comes before all teams, those
    of one kind in the order given, because parents have to be there before their children. An object never moves to
    another piece when others come or go: that would delete it. The pieces of teams are in nested stacks, four at most,
    because one template could not hold those of two hundred teams.

    Why the pieces are as they are: an object that leaves its piece is removed by `kubectl apply --prune`, which knows
    few kinds (namespaces, volumes, config maps and workloads; not queues, role bindings, quotas or policies). What it
    does not know is removed only with its whole piece. A team's objects of such kinds should therefore always exist,
    and say "nothing" where nothing is wanted.

    Decided for you: objects that exist already are taken over, because the CDK removes nothing after a failed creation
    and the next attempt would stop at what the first left; a piece holds at most 200 kB.
    Source: kubectl handler of aws-cdk-lib 2.275.0; kubectl 1.35, default list of `--prune`.

    Example:
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "10"}},
                 "metadata": {"name": "caps", "namespace": "llm", "labels": {"podwright/team": "llm"}}}
        Manifests(stack, "Quotas", cluster=cluster, objects=[quota])
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        objects: Iterable[Mapping[str, Any]],
        after: Iterable[cdk.CfnResource] = (),
    ) -> None:
        """Defines the objects.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            cluster: EKS cluster with a kubectl provider.
            objects: Complete objects, each with apiVersion, kind and a name: those of a chart by its `to_json()`.
            after: What has to be there first.

        Raises:
            ValueError: two objects of one kind, namespace and name, or a piece above 200 kB.
        """
        super().__init__(scope, construct_id)
        # Pieces by construct id; the ids decide what CloudFormation compares with what.
        shared, teams = _pieces(objects)

        begin = _barrier(self, "Begin", after) if (after := list(after)) else None
        first = self._apply_shared(cluster, shared, begin)
        ready = _barrier(self, "Shared", first) if first and teams else begin
        rest = self._apply_teams(cluster, teams, ready)

        self.applied = _barrier(self, "Applied", rest or first or ([begin] if begin else []))
        """Comes when every object is there; whatever needs them depends on it."""
        self.pieces = tuple({**shared, **teams})
        """Ids of the pieces, those that all teams share first."""

    def _apply_shared(
        self, cluster: eks.ICluster, pieces: Mapping[str, list[Mapping[str, Any]]], begin: cdk.CfnResource | None
    ) -> list[cdk.CfnResource]:
        """Apply one object after another of each kind; returns the last ones."""
        last: dict[str, cdk.CfnResource] = {}
        for name, piece in pieces.items():
            kind = piece[0]["kind"]
            # No pruning for single objects: a piece that loses its only object is deleted whole.
            resource = _apply(self, name, cluster, piece, prune=False)
            if before := last.get(kind, begin):
                resource.add_resource_dependency(before)
            last[kind] = resource
        return list(last.values())

    def _apply_teams(
        self, cluster: eks.ICluster, pieces: Mapping[str, list[Mapping[str, Any]]], ready: cdk.CfnResource | None
    ) -> list[cdk.CfnResource]:
        """Apply the pieces of teams in nested stacks, each team in the one that its name decides."""
        stacks: dict[int, cdk.NestedStack] = {}
        for name, piece in pieces.items():
            # By name and not by count: who comes or goes moves nobody else.
            number = hashlib.sha256(name.encode()).digest()[0] % _NESTED
            if number not in stacks:
                stacks[number] = cdk.NestedStack(self, f"Teams{number}", description="Kubernetes objects of teams")
            _apply(stacks[number], name, cluster, piece, prune=True)
        resources = [cast(cdk.CfnResource, stack.nested_stack_resource) for stack in stacks.values()]
        if ready:
            for resource in resources:
                resource.add_resource_dependency(ready)
        return resources


def _apply(
    scope: Construct, name: str, cluster: eks.ICluster, piece: list[Mapping[str, Any]], *, prune: bool
) -> cdk.CfnResource:
    manifest = eks.KubernetesManifest(scope, name, cluster=cluster, manifest=piece, overwrite=True, prune=prune)
    return cast(cdk.CfnResource, manifest.node.default_child)


def _pieces(
    objects: Iterable[Mapping[str, Any]],
) -> tuple[dict[str, list[Mapping[str, Any]]], dict[str, list[Mapping[str, Any]]]]:
    """The pieces that all share and those of teams, by the ids of their constructs."""
    shared: dict[str, list[Mapping[str, Any]]] = {}
    teams: dict[str, list[Mapping[str, Any]]] = {}
    observed: set[str] = set()
    for item in objects:
        metadata, kind = item["metadata"], item["kind"]
        own = ".".join(filter(None, (kind, metadata.get("namespace"), metadata["name"])))
        if own in observed:
            raise ValueError(f"two objects are called {own}; Kubernetes would keep the last one")
        observed.add(own)
        team = metadata.get("labels", {}).get(TEAM_LABEL)
        if team is None:
            shared[own] = [item]
        else:
            teams.setdefault(f"Team-{team}", []).append(item)
    for name, piece in {**shared, **teams}.items():
        # Counted as it travels: a JSON text within JSON.
        size = len(json.dumps(json.dumps(piece)))
        if size > _MOST_BYTES:
            raise ValueError(
                f"{name} takes {size:,} bytes as one custom resource, of which {_MOST_BYTES:,} can be sent; "
                "give what it holds to several teams or objects"
            )
    return shared, teams


def _barrier(scope: Construct, construct_id: str, after: list[cdk.CfnResource]) -> cdk.CfnResource:
    # A handle makes nothing in AWS, and CloudFormation waits for none.
    """Nothing, which comes after others: a hundred pieces that depend on a hundred would fill the template."""
    handle = cdk.CfnWaitConditionHandle(scope, construct_id)
    for resource in after:
        handle.add_resource_dependency(resource)
    return cast(cdk.CfnResource, handle)
