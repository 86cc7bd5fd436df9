"""The real control planes under EKS clusters: one for each, below the sandbox's state directory."""

import logging
import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from werkzeug.serving import BaseWSGIServer

from ...config.catalog.charts import HYPERPOD_DEPENDENCIES, KAI, KUEUE, YUNIKORN
from ...config.errors import CommandError
from ...config.settings.governance.task_governance import ADDON
from ...config.settings.platform import KUBEFLOW_TRAINER, KUBERAY, LEADER_WORKER_SET, TRAINING_OPERATOR
from ..control_plane.cache import Cache
from ..control_plane.control_plane import ControlPlane, pins_for
from ..control_plane.operators import Name
from ..hyperpod.kubelet_api import KubeletApi
from ..hyperpod.kubelets import Kubelets, NodeService
from ..hyperpod.pod_ends import DrillService, PodEnds
from ..kubernetes.cluster_objects import ApiError
from ..kubernetes.secure_server import secure_server
from ..protocol.json_objects import JsonObject
from .compute_domains import ComputeDomains
from .task_governance import settings
from .webhook_files import api_server_options

_OPERATORS: Final[dict[str, tuple[Name, ...]]] = {
    ADDON: ("kueue",),
    KUEUE: ("kueue",),
    YUNIKORN: ("yunikorn",),
    HYPERPOD_DEPENDENCIES: ("training-operator", "mpi-operator"),
    KUBERAY: ("kuberay",),
    KUBEFLOW_TRAINER: ("jobset", "trainer"),
    LEADER_WORKER_SET: ("lws",),
    TRAINING_OPERATOR: ("hyperpod-training-operator",),
}
"""The operators that run here, by the add-on or chart that brings them, in the order in which they start."""

_SWITCHES: Final[dict[Name, str]] = {"training-operator": "trainingOperators", "mpi-operator": "mpi-operator"}
"""The values of HyperPod's chart that turn an operator off."""


class Followed(NodeService, DrillService, Protocol):
    """Who has the nodes, and says how pods on them end."""


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Where API servers ask who their users are, and what proves that they are API servers of this sandbox."""

    server: str
    trusted: Path
    bearer: str


@dataclass(frozen=True, slots=True)
class _Followers:
    """What plays the nodes of one cluster, and what runs on them."""

    kubelets: Kubelets
    pod_ends: PodEnds
    compute_domains: ComputeDomains
    logs: BaseWSGIServer

    @classmethod
    def of(cls, plane: ControlPlane, region: str, cluster: str, service: Followed) -> "_Followers":
        """Those of a cluster; the server of its containers' logs serves from here on."""
        answers = KubeletApi(plane.kubeconfig, lambda: service.job_faults)
        logs = secure_server(answers, plane.kubelets.server("kubelet"), clients=plane.kubelets.file)
        threading.Thread(target=logs.serve_forever, daemon=True, name=f"kubelets of {cluster}").start()
        at = (plane.kubeconfig, region, cluster)
        return cls(Kubelets(*at, logs.server_port), PodEnds(*at), ComputeDomains(plane.kubeconfig), logs)

    def close(self) -> None:
        """Answer no more."""
        self.logs.shutdown()
        self.logs.server_close()


@dataclass
class ControlPlanes:
    """Those of one account's clusters, each in a folder of its own."""

    folder: Path
    account: str
    webhooks: Webhooks
    for_new_clusters: bool
    """Whether a new cluster gets one; a store keeps its objects otherwise."""
    time_scale: float = 1.0
    """What waits of podwright's own operators are multiplied by."""
    planes: dict[tuple[str, str], ControlPlane] = field(default_factory=dict)
    _followers: dict[tuple[str, str], "_Followers"] = field(default_factory=dict)

    def start(self, region: str, cluster: str, version: str) -> ControlPlane:
        """Start the control plane of a cluster, a new one or with what it held.

        Args:
            region: The cluster's.
            cluster: Its name.
            version: Its minor version of Kubernetes; the default one runs where that is not installed.

        Raises:
            CommandError: It is not installed, or does not get ready.
        """
        folder = self._folder(region, cluster)
        folder.mkdir(parents=True, exist_ok=True)
        cache = Cache.of_user()
        plane = ControlPlane(folder, pins_for(version, cache), cache, self.time_scale)
        # A sandbox that was killed could not stop them.
        plane.stop()
        webhooks = self.webhooks
        name = f"{self.account}/{region}/{cluster}"
        options = api_server_options(folder, webhooks.server, webhooks.trusted, webhooks.bearer, name)
        plane.start(options=options)
        self.planes[region, cluster] = plane
        return plane

    def install(self, region: str, cluster: str, owner: str, values: JsonObject | None = None) -> None:
        """Run what an add-on or a chart of this name brings, as far as it runs here, where the cluster is a real one.

        Args:
            region: The cluster's.
            cluster: Its name.
            owner: The add-on or the release of the chart.
            values: The chart's, some of which turn an operator off.

        Raises:
            CommandError: Its objects are refused, or it does not get ready.
        """
        plane = self.planes.get((region, cluster))
        if plane is None:
            return
        for name in _OPERATORS.get(owner, ()):
            if (values or {}).get(_SWITCHES.get(name, ""), {}).get("enabled", True):
                plane.install(name, settings({}) if owner == ADDON else None)
            else:
                plane.uninstall(name)

    def chart(self, region: str, cluster: str, name: str) -> Path | None:
        """The upstream chart of this name, where the cluster's control plane carries it."""
        plane = self.planes.get((region, cluster))
        return plane.chart(name) if plane else None

    def restart(self, region: str, cluster: str, owner: str, changed: JsonObject | None = None) -> None:
        """Let an operator take the configuration that its chart brought, or one that is changed."""
        plane = self.planes.get((region, cluster))
        if plane is None:
            return
        for name in _OPERATORS.get(owner, ()):
            plane.restart(name, changed)
        if owner == KAI:
            plane.kai.deploy(owner)

    def uninstall(self, region: str, cluster: str, owner: str) -> None:
        """Stop what an add-on or a chart brought."""
        plane = self.planes.get((region, cluster))
        if plane is None:
            return
        for name in reversed(_OPERATORS.get(owner, ())):
            plane.uninstall(name)
        if owner == KAI:
            plane.kai.remove()

    def follow(self, service: Followed) -> None:
        """Let the Node objects of all clusters follow HyperPod's nodes, and let pods end that should.

        Programs of a control plane that ended by themselves are started again. What does not work is told in the log
        and tried again the next time.
        """
        for (region, cluster), plane in list(self.planes.items()):
            if (region, cluster) not in self._followers:
                self._followers[region, cluster] = _Followers.of(plane, region, cluster, service)
            followers = self._followers[region, cluster]
            try:
                if ended := plane.restart_ended():
                    logging.warning("%s of %s had ended, and is started again", ", ".join(ended), cluster)
                plane.kai.run()
                followers.kubelets.follow(service)
                followers.pod_ends.follow(service)
                followers.compute_domains.follow(followers.kubelets.instance_types)
            except ApiError as error:
                logging.warning("the nodes of %s are not followed: %s", cluster, error)
            except CommandError as error:
                logging.warning("the control plane of %s is not whole: %s", cluster, error)

    def is_real(self, region: str, cluster: str) -> bool:
        """Whether a cluster has a control plane of its own."""
        return self._folder(region, cluster).exists()

    def delete(self, region: str, cluster: str) -> None:
        """Stop a cluster's control plane, and forget what it held."""
        if followers := self._followers.pop((region, cluster), None):
            followers.close()
        if plane := self.planes.pop((region, cluster), None):
            plane.stop()
        if self.is_real(region, cluster):
            shutil.rmtree(self._folder(region, cluster))

    def stop(self) -> None:
        """Stop all of them beside each other. What they hold stays."""
        for followers in self._followers.values():
            followers.close()
        threads = [threading.Thread(target=plane.stop) for plane in self.planes.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _folder(self, region: str, cluster: str) -> Path:
        return self.folder / self.account / region / cluster
