"""The real control planes of EKS clusters, one for each, below the sandbox's state directory."""

import json
import logging
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol

from werkzeug.serving import BaseWSGIServer

from ...config.catalog.charts import KAI
from ...config.errors import CommandError
from ...config.settings.governance.task_governance import ADDON
from ...planning.helm.operators import (
    BASE_PARTS,
    BY_OWNER,
    NODE_PARTS,
    OPERATORS,
    Operator,
    enabled_operators,
    is_optional,
)
from ..control_plane.cache import Cache
from ..control_plane.control_plane import ControlPlane, missing_parts, pins_for
from ..control_plane.pins import pins
from ..hyperpod.kubelet_api import KubeletApi
from ..hyperpod.kubelets import Kubelets, NodeService
from ..hyperpod.pod_ends import DrillService, PodEnds
from ..hyperpod.real_pods import HealthService, RealPods
from ..kubernetes.api_objects import ApiObjects
from ..kubernetes.cluster_objects import ApiError
from ..kubernetes.secure_server import secure_server
from ..nodes.cluster_services import cluster_objects
from ..nodes.real_nodes import NODE_FAULTS, RealNodes
from ..nodes.support import NONE_DESIRED, NodeBudget, Offer, obstacle, offer, programs
from ..protocol.json_objects import JsonObject
from .compute_domains import ComputeDomains
from .task_governance import settings
from .webhook_files import api_server_options

Clusters = Literal["real", "store", "installed"]
"""Kind of new clusters: `installed` is real if the cluster's parts are installed, otherwise a store."""
_NEEDS: Final = "needs.json"
_PATIENCE_SECONDS: Final = 20.0


class Followed(NodeService, DrillService, HealthService, Protocol):
    """The service that has the nodes, and decides how their pods end."""


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Address of the webhooks of API servers, and the secret that proves that they belong to this sandbox."""

    server: str
    trusted: Path
    bearer: str


@dataclass(frozen=True, slots=True)
class _Followers:
    """The real and simulated nodes of one cluster with their containers."""

    granted: Offer
    """Number of its real nodes."""
    kubelets: Kubelets
    real_nodes: RealNodes | None
    real_pods: RealPods | None
    pod_ends: PodEnds
    compute_domains: ComputeDomains
    logs: BaseWSGIServer

    @classmethod
    def of(
        cls,
        plane: ControlPlane,
        region: str,
        cluster: str,
        service: Followed,
        granted: Offer,
        real_nodes: RealNodes | None = None,
    ) -> "_Followers":
        """Return the followers of a cluster, and start serving the logs of its simulated containers."""
        answers = KubeletApi(plane.kubeconfig, lambda: service.job_faults)
        logs = secure_server(answers, plane.kubelets.server("kubelet"), clients=plane.kubelets.file)
        try:
            at = (plane.kubeconfig, region, cluster)
            kubelets = Kubelets(*at, logs.server_port, real_nodes)
            real_pods = RealPods(*at, real_nodes) if real_nodes else None
            domains = ComputeDomains(plane.kubeconfig)
            followers = cls(granted, kubelets, real_nodes, real_pods, PodEnds(*at), domains, logs)
            threading.Thread(target=logs.serve_forever, daemon=True, name=f"kubelets of {cluster}").start()
        except BaseException:
            logs.server_close()
            raise
        return followers

    def close(self) -> None:
        """Stop the real nodes, and the log server of the simulated ones."""
        if self.real_nodes:
            self.real_nodes.stop()
        self.logs.shutdown()
        self.logs.server_close()


def lacking(parts: Sequence[str], environment: str) -> CommandError:
    """Return the error of a cluster that needs parts that are not installed."""
    return CommandError(
        f"the control plane lacks {', '.join(parts)}", f"`podwright sandbox kubernetes install {environment}`"
    )


@dataclass
class ControlPlanes:
    """The control planes of one account's clusters, each in its own folder."""

    folder: Path
    account: str
    webhooks: Webhooks
    new_clusters: Clusters
    """Kind of new clusters."""
    time_scale: float = 1.0
    """Factor for the waits of podwright's own operators."""
    real_nodes: NodeBudget = field(default_factory=lambda: NodeBudget(0))
    """Budget of real nodes; all other nodes are simulated."""
    planes: dict[tuple[str, str], ControlPlane] = field(default_factory=dict)
    _environments: dict[tuple[str, str], str] = field(default_factory=dict)
    _followers: dict[tuple[str, str], "_Followers"] = field(default_factory=dict)
    _following: threading.RLock = field(default_factory=threading.RLock)
    """Held while `follow` updates the nodes of a cluster, so that the cluster is not deleted meanwhile."""

    def note_needs(self, needs: Mapping[str, Sequence[str]]) -> None:
        """Record the parts that clusters need, by the name of their environment or of an existing cluster."""
        file = self.folder / self.account / _NEEDS
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(self._needs() | {name: list(parts) for name, parts in needs.items()}))

    def missing(self, name: str) -> list[str]:
        """Return the parts that the cluster of an environment needs and that are not installed.

        The needs of a cluster that `podwright deploy` does not make, such as one of `cdk deploy`, are unknown. It needs
        every part, unless the sandbox was started for real clusters.
        """
        every = [part.name for part in pins().parts if part.name not in NODE_PARTS]
        unknown = [] if self.new_clusters == "real" else every
        needed = self._needs().get(name, unknown)
        return missing_parts([*BASE_PARTS, *needed], pins(), Cache.of_user())

    @property
    def announced(self) -> list[str]:
        """Names of the environments whose needs are recorded."""
        return sorted(self._needs())

    def _needs(self) -> dict[str, list[str]]:
        try:
            return json.loads((self.folder / self.account / _NEEDS).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}

    def becomes_real(self, name: str) -> bool:
        """Return True if a new cluster of this environment gets a real control plane.

        Raises:
            CommandError: It requires one, and some of its parts are not installed.
        """
        if self.new_clusters == "store":
            return False
        missing = self.missing(name)
        if missing and self.new_clusters == "real":
            raise lacking(missing, name)
        return not missing

    def start(self, region: str, cluster: str, version: str, environment: str) -> ControlPlane:
        """Start the control plane of a cluster, with earlier data if it has some.

        Args:
            region: Region of the cluster.
            cluster: Name of the cluster.
            version: Minor version of Kubernetes. If it is not installed, the default version runs.
            environment: Name of its environment, or of the cluster itself if podwright did not create it.

        Raises:
            CommandError: A part is not installed, or a program does not become ready.
        """
        folder = self._folder(region, cluster)
        folder.mkdir(parents=True, exist_ok=True)
        cache = Cache.of_user()
        plane = ControlPlane(folder, pins_for(version, cache), cache, self.time_scale)
        # A killed sandbox has not stopped its programs.
        plane.stop()
        webhooks = self.webhooks
        name = f"{self.account}/{region}/{cluster}"
        options = api_server_options(folder, webhooks.server, webhooks.trusted, webhooks.bearer, name)
        plane.start(options=options)
        self.planes[region, cluster] = plane
        self._environments[region, cluster] = environment
        return plane

    def apply_releases(self, region: str, cluster: str, owner: str, values: JsonObject | None = None) -> None:
        """Apply the releases of an add-on's or chart's operators to a real cluster, if the sandbox can run them.

        `start_operators` starts them, once the chart has been applied.

        Args:
            region: Region of the cluster.
            cluster: Name of the cluster.
            owner: Name of the add-on or of the chart's release.
            values: Values of the chart, some of which disable an operator.

        Raises:
            CommandError: The API server refuses its objects.
        """
        plane = self.planes.get((region, cluster))
        if plane is None:
            return
        for name, enabled in enabled_operators(owner, values).items():
            if not enabled:
                plane.uninstall(name)
            elif is_optional(name) and missing_parts([name], pins(), Cache.of_user()):
                logging.warning("%s runs without %s, whose part is not installed", cluster, name)
            else:
                plane.apply_release(name, settings({}) if owner == ADDON else None, self._expected(region, cluster))

    def _expected(self, region: str, cluster: str) -> list[Operator]:
        """Return the operators that a cluster is known to need and that are installed."""
        needs = self._needs().get(self._environments.get((region, cluster), cluster), ())
        missing = missing_parts(needs, pins(), Cache.of_user())
        return [name for name in OPERATORS if name in needs and name not in missing]

    def chart(self, region: str, cluster: str, name: str) -> Path | None:
        """Return the upstream chart of this name from an installed part; None without one."""
        plane = self.planes.get((region, cluster))
        return plane.chart(name) if plane else None

    def start_operators(self, region: str, cluster: str, owner: str, changed: JsonObject | None = None) -> None:
        """Start the processes of operators whose release is applied, or restart them with a changed configuration.

        Raises:
            CommandError: One does not become ready.
        """
        plane = self.planes.get((region, cluster))
        if plane is None:
            return
        for name in BY_OWNER.get(owner, ()):
            plane.restart(name, changed)
        if owner == KAI:
            plane.deploy_kai()

    def uninstall(self, region: str, cluster: str, owner: str) -> None:
        """Uninstall the operators of an add-on or chart."""
        plane = self.planes.get((region, cluster))
        if plane is None:
            return
        for name in reversed(BY_OWNER.get(owner, ())):
            plane.uninstall(name)
        if owner == KAI:
            plane.kai.remove()

    def follow(self, service: Followed) -> None:
        """Update the Node objects of all clusters from HyperPod's nodes, and end pods that are due.

        Programs of a control plane that ended unexpectedly are restarted. Errors are logged, and the next call tries
        again.
        """
        for (region, cluster), plane in list(self.planes.items()):
            try:
                with self._following:
                    # It may have been deleted, or deleted and created again.
                    if self.planes.get((region, cluster)) is plane:
                        self._follow(plane, region, cluster, service)
            except ApiError as error:
                logging.warning("the nodes of %s are not followed: %s", cluster, error)
            except CommandError as error:
                logging.warning("the control plane of %s is not whole: %s", cluster, error)
            except OSError as error:
                # Such as a full disk. The other clusters are still followed.
                logging.warning("the real nodes of %s are not followed: %s", cluster, error)

    def _follow(self, plane: ControlPlane, region: str, cluster: str, service: Followed) -> None:
        if (region, cluster) not in self._followers:
            self._followers[region, cluster] = self._new_followers(plane, region, cluster, service)
        followers = self._followers[region, cluster]
        if ended := plane.restart_ended():
            logging.warning("%s of %s had ended, and is started again", ", ".join(ended), cluster)
        plane.kai.run()
        followers.kubelets.follow(service)
        followers.pod_ends.follow(service, followers.real_nodes.running if followers.real_nodes else ())
        if followers.real_pods:
            followers.real_pods.follow(service)
        followers.compute_domains.follow(followers.kubelets.instance_types)

    @contextmanager
    def _pause_following(self) -> Iterator[None]:
        """Keep `follow` from updating nodes in the `with` block, which starts after 20 seconds at the latest.

        The API server of a cluster that is being followed may never answer.
        """
        is_paused = self._following.acquire(timeout=_PATIENCE_SECONDS)
        try:
            yield
        finally:
            if is_paused:
                self._following.release()

    def _new_followers(self, plane: ControlPlane, region: str, cluster: str, service: Followed) -> _Followers:
        """Return the followers of a cluster, with real nodes if this machine can run them."""
        cache = Cache.of_user()
        if not self.real_nodes.each:
            return _Followers.of(plane, region, cluster, service, Offer(0, NONE_DESIRED))
        if unusable := obstacle(plane.pins, cache):
            return _Followers.of(plane, region, cluster, service, Offer(0, *unusable))
        for item in cluster_objects():
            ApiObjects(plane.kubeconfig).apply(item)
        folder = self._folder(region, cluster) / "nodes"
        granted = self.real_nodes.take()
        try:
            if granted.why_not_more:
                message = "%d nodes of %s are real at most: %s → %s"
                logging.warning(message, granted.count, cluster, granted.why_not_more, granted.action)
            real_nodes = RealNodes(folder, plane, programs(plane.pins, cache), granted.count)
            return _Followers.of(plane, region, cluster, service, granted, real_nodes)
        except BaseException:
            # The next attempt reserves nodes again.
            self.real_nodes.give_back(granted.count)
            raise

    def granted_nodes(self, region: str, cluster: str) -> Offer:
        """Return how many nodes of a cluster are real; before its nodes start, how many could be."""
        if followers := self._followers.get((region, cluster)):
            return followers.granted
        return offer(self.real_nodes.each, pins(), Cache.of_user())

    def real_nodes_with(self, name: str) -> RealNodes:
        """Return the real nodes of the cluster that has a running one of this name. Raises ValueError if none has."""
        for followers in self._followers.values():
            if followers.real_nodes and name in followers.real_nodes.running:
                return followers.real_nodes
        raise ValueError(f"{name} is a simulated node, or does not run; {', '.join(NODE_FAULTS)} need a real one")

    def is_real(self, region: str, cluster: str) -> bool:
        """True if a cluster has a real control plane."""
        return self._folder(region, cluster).exists()

    def delete(self, region: str, cluster: str) -> None:
        """Stop a cluster's control plane and delete its data."""
        with self._pause_following():
            if followers := self._followers.pop((region, cluster), None):
                try:
                    followers.close()
                finally:
                    self.real_nodes.give_back(followers.granted.count)
            plane = self.planes.pop((region, cluster), None)
            self._environments.pop((region, cluster), None)
        if plane:
            plane.stop()
        if self.is_real(region, cluster):
            shutil.rmtree(self._folder(region, cluster))

    def stop(self) -> None:
        """Stop all control planes at the same time. Their data remain."""
        with self._pause_following():
            planes = list(self.planes.values())
            # `follow` then ignores them.
            self.planes.clear()
            for followers in self._followers.values():
                followers.close()
        threads = [threading.Thread(target=plane.stop) for plane in planes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _folder(self, region: str, cluster: str) -> Path:
        return self.folder / self.account / region / cluster
