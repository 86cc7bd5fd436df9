"""Prepares moto's imports: import this module before any other that imports moto's services.

On import, moto's EC2 would read the instance types of all regions (47 MB), of which `services.zones` reads single
regions, and the endpoints of all services in a new session (7 MB), which `protocol.models` shares.
"""

import moto.utilities.utils as moto_utilities

from ..protocol import models

_OFFERS = "ec2/resources/instance_type_offerings/"
_load_resource = moto_utilities.load_resource


def _without_offers(filename: str) -> object:
    return [] if filename.startswith(_OFFERS) else _load_resource(filename)


models.mount()
moto_utilities.load_resource = _without_offers  # pyrefly: ignore[bad-assignment]
try:
    import moto.ec2.models.instance_types  # noqa: F401
finally:
    moto_utilities.load_resource = _load_resource
