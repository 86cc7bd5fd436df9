"""Taking capacity away: an operation of the sandbox's own, for trying what a deployment does where AWS has none.

`GET /podwright/capacity` lists what is missing, `PUT` replaces the list:
`[{"zone_id": "usw2-az2", "instance_type": "ml.p5en.48xlarge"}]`; without an instance type the zone has nothing at all.
Zones and types that nothing has are refused, with those that there are.
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
