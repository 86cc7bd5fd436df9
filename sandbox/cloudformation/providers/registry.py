"""Which handler serves which resource type."""

from ..schemas import is_custom
from .base import Provider
from .custom import CustomResource
from .databases import DATABASES
from .functions import FUNCTIONS
from .identity import IDENTITY
from .kubernetes import KUBERNETES
from .kubernetes_control import EKS
from .nested import NESTED
from .network import NETWORK
from .observability import OBSERVABILITY
from .recorded import Recorded
from .schedulers import SCHEDULERS
from .security_groups import SECURITY_GROUPS
from .stores import STORES
from .training import TRAINING

_HANDLERS: dict[str, Provider] = {
    **NETWORK,
    **SECURITY_GROUPS,
    **IDENTITY,
    **STORES,
    **DATABASES,
    **EKS,
    **TRAINING,
    **SCHEDULERS,
    **FUNCTIONS,
    **KUBERNETES,
    **NESTED,
    **OBSERVABILITY,
}
_RECORDED, _CUSTOM = Recorded(), CustomResource()
# In AWS there is nothing behind it either: it only waits for what it depends on.
_NOTHING_BEHIND = "AWS::CloudFormation::WaitConditionHandle"


def provider_for(resource_type: str) -> Provider:
    """The handler of a type: a real one, or the one that only records."""
    if resource_type not in _HANDLERS and is_custom(resource_type):
        return _CUSTOM
    return _HANDLERS.get(resource_type, _RECORDED)


def is_recorded_only(resource_type: str) -> bool:
    """Whether resources of this type exist only in CloudFormation's view: no other API of the sandbox shows them."""
    return resource_type not in (*_HANDLERS, _NOTHING_BEHIND) and not is_custom(resource_type)


def real_types() -> list[str]:
    """The types whose resources the sandbox's other APIs (boto3) show."""
    return sorted(_HANDLERS)
