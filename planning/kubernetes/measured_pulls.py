"""How long nodes took to pull the images of a job, by the kubelet's events, against the time to get ready."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from .durations import go_seconds

# Source: kubelet of Kubernetes 1.34, events of images; the size came with 1.30.
_PULLED: Final = re.compile(
    r'Successfully pulled image "(?P<image>[^"]+)" in (?P<pull>\S+)'
    r"(?: \((?P<all>\S+) including waiting\))?(?:\. Image size: (?P<size>\d+) bytes)?"
)
_PRESENT: Final = re.compile(r'Container image "(?P<image>[^"]+)" already present on machine')


class ImagePull(NamedTuple):
    """One pod's wait for an image."""

    pod: str
    image: str
    seconds: float
    """From the request to the end of the pull, with what waited for other pulls of the node; zero where the node had
    the image."""
    size: int | None
    """Bytes of the image as the node counts it, if its Kubernetes says so."""

    @property
    def rate(self) -> float | None:
        """MB/s of the image's size."""
        return self.size / 1e6 / self.seconds if self.size and self.seconds else None


def image_pulls(events: Iterable[Mapping[str, Any]]) -> list[ImagePull]:
    """The pulls that events tell of, the slowest first."""
    results: list[ImagePull] = []
    for event in events:
        pod, message = event["involvedObject"].get("name", ""), event.get("message") or ""
        if matched := _PULLED.match(message):
            size = int(matched["size"]) if matched["size"] else None
            results.append(ImagePull(pod, matched["image"], go_seconds(matched["all"] or matched["pull"]), size))
        elif matched := _PRESENT.match(message):
            results.append(ImagePull(pod, matched["image"], 0.0, None))
    return sorted(results, key=lambda pull: -pull.seconds)


def sentences(pulls: list[ImagePull], limit: int | None) -> list[str]:
    """What the pulls say to people; `limit` are the seconds in which all pods have to be ready."""
    counted = [pull for pull in pulls if pull.seconds]
    texts = [f"{len(pulls) - len(counted)} of {len(pulls)} images were on their node already"]
    if counted:
        slowest = counted[0]
        rate = f" ({slowest.rate:.0f} MB/s)" if slowest.rate else ""
        texts.append(f"the slowest pull took {slowest.seconds:.0f} s{rate}: {slowest.image} for {slowest.pod}")
    if counted and limit:
        texts.append(_against(counted[0].seconds, limit))
    return texts


def _against(seconds: float, limit: int) -> str:
    if seconds < limit:
        return f"that is {seconds / limit:.0%} of the {limit} s in which Kueue wants all pods ready"
    return (
        f"Kueue wants all pods ready within {limit} s, so a job on a node without the image loses its place: list the "
        "image under pull_images of the group, or raise governance.wait_for_pods.timeout_seconds"
    )
