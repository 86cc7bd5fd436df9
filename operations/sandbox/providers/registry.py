"""Which handler serves which resource type."""

from .base import Provider
from .identity import IDENTITY
from .kubernetes_control import EKS
from .network import NETWORK
from .recorded import Recorded
from .stores import STORES
from .training import TRAINING

_HANDLERS: dict[str, Provider] = {**NETWORK, **IDENTITY, **STORES, **EKS, **TRAINING}
_RECORDED = Recorded()


def provider_for(resource_type: str) -> Provider:
    """The handler of a type: a real one, or the one that only records."""
    return _HANDLERS.get(resource_type, _RECORDED)


def is_recorded_only(resource_type: str) -> bool:
    """Whether resources of this type exist only in CloudFormation's view: no other API of the sandbox shows them."""
    return resource_type not in _HANDLERS


def real_types() -> list[str]:
    """The types whose resources the sandbox's other APIs (boto3) show."""
    return sorted(_HANDLERS)
