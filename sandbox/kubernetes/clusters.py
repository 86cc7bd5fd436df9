"""The Kubernetes API of each cluster of the sandbox: a store, or a real API server."""

from .api_objects import ApiObjects
from .cluster_objects import ApiError, ClusterObjects
from .store import KubernetesStore


class Kubernetes:
    """The objects of all clusters."""

    def __init__(self) -> None:
        self.clusters: dict[tuple[str, str], KubernetesStore | ApiObjects] = {}

    def open(self, region: str, cluster: str, version: str) -> None:
        """Make the store of a new cluster."""
        self.clusters[region, cluster] = KubernetesStore(version)

    def connect(self, region: str, cluster: str, objects: ApiObjects) -> None:
        """From now on a real API server has a cluster's objects; the store goes.

        Args:
            region: The cluster's.
            cluster: Its name.
            objects: Those of the API server, as its administrator.
        """
        self.clusters[region, cluster] = objects

    def objects(self, region: str, cluster: str) -> ClusterObjects:
        """The objects of a cluster; raises ApiError if the cluster does not exist."""
        result = self.clusters.get((region, cluster))
        if result is None:
            raise ApiError(404, "NotFound", f"the cluster {cluster} does not exist (sandbox)")
        return result

    def store(self, region: str, cluster: str) -> KubernetesStore:
        """The store of a cluster; raises ApiError if the cluster does not exist, or has an API server of its own."""
        result = self.objects(region, cluster)
        if not isinstance(result, KubernetesStore):
            raise ApiError(404, "NotFound", f"the cluster {cluster} has an API server of its own (sandbox)")
        return result

    def set_version(self, region: str, cluster: str, version: str) -> None:
        """Let a store serve another Kubernetes version. A real API server stays what it is."""
        result = self.objects(region, cluster)
        if isinstance(result, KubernetesStore):
            result.version = version

    def close(self, region: str, cluster: str) -> None:
        """Forget the objects of a deleted cluster."""
        self.clusters.pop((region, cluster), None)
