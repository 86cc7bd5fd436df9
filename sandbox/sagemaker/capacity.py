"""Missing capacity, an operation of the sandbox for testing deployments.

`GET /podwright/capacity` returns the list of missing capacity, `PUT` replaces it:
`[{"zone_id": "usw2-az2", "instance_type": "ml.p5en.48xlarge"}]`. Without an instance type, the zone has no capacity for
any type. Unknown zones and types are refused, with the allowed values.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter, ValidationError
from werkzeug.wrappers import Request, Response

from ..hyperpod.cluster import Shortage
from ..protocol.known_names import check_known
from ..services.zones import zones_near
from .service import HyperPod, instance_types

PATH = "/podwright/capacity"
_SHORTAGES = TypeAdapter(list[Shortage])


def serve(hyperpod: HyperPod, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Serve one request."""
    request = Request(environ)
    if request.method == "PUT":
        try:
            shortages = _SHORTAGES.validate_json(request.get_data())
            for item in shortages:
                check_known("zone", [item.zone_id], zones_near(item.zone_id))
                check_known("instance type", filter(None, [item.instance_type]), instance_types())
        except (ValidationError, ValueError) as error:
            return Response(f"{error}\n", 400)(environ, start_response)
        hyperpod.shortages = shortages
    text = json.dumps([asdict(item) for item in hyperpod.shortages])
    return Response(text, content_type="application/json")(environ, start_response)
