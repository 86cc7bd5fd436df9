"""The Kubernetes API of each cluster of the sandbox: a store, or a real API server."""

from .api_objects import ApiObjects
from .cluster_objects import ApiError, ClusterObjects
from .store import KubernetesStore


class Kubernetes:
    """The objects of all clusters."""

    def __init__(self) -> None:
        self.clusters: dict[tuple[str, str], KubernetesStore | ApiObjects] = {}

    def open(self, region: str, cluster: str, version: str) -> None:
        """Create the store of a new cluster."""
        self.clusters[region, cluster] = KubernetesStore(version)

    def connect(self, region: str, cluster: str, objects: ApiObjects) -> None:
        """Replace the store of a cluster by a real API server.

        Args:
            region: The cluster's.
            cluster: Its name.
            objects: Those of the API server, as its administrator.
        """
        self.clusters[region, cluster] = objects

    def objects(self, region: str, cluster: str) -> ClusterObjects:
        """Return the objects of a cluster. Raises ApiError if the cluster does not exist."""
        result = self.clusters.get((region, cluster))
        if result is None:
            raise ApiError(404, "NotFound", f"the cluster {cluster} does not exist (sandbox)")
        return result

    def store(self, region: str, cluster: str) -> KubernetesStore:
        """Return the store of a cluster. Raises ApiError if the cluster does not exist or has a real API server."""
        result = self.objects(region, cluster)
        if not isinstance(result, KubernetesStore):
            raise ApiError(404, "NotFound", f"the cluster {cluster} has an API server of its own (sandbox)")
        return result

    def set_version(self, region: str, cluster: str, version: str) -> None:
        """Let a store serve another Kubernetes version. Real API servers do not change."""
        result = self.objects(region, cluster)
        if isinstance(result, KubernetesStore):
            result.version = version

    def close(self, region: str, cluster: str) -> None:
        """Remove the objects of a deleted cluster."""
        self.clusters.pop((region, cluster), None)
