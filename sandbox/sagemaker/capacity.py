"""Taking capacity away: an operation of the sandbox's own, for trying what a deployment does where AWS has none.

`GET /podwright/capacity` lists what is missing, `PUT` replaces the list:
`[{"zone_id": "usw2-az2", "instance_type": "ml.p5en.48xlarge"}]`; without an instance type the zone has nothing at all.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from werkzeug.wrappers import Request, Response

from ..hyperpod.cluster import Shortage
from .service import HyperPod

PATH = "/podwright/capacity"


def serve(hyperpod: HyperPod, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Serve one request."""
    request = Request(environ)
    if request.method == "PUT":
        try:
            hyperpod.shortages = [Shortage(**item) for item in json.loads(request.get_data())]
        except (TypeError, ValueError) as error:
            return Response(f"{error}\n", 400)(environ, start_response)
    text = json.dumps([asdict(item) for item in hyperpod.shortages])
    return Response(text, content_type="application/json")(environ, start_response)
