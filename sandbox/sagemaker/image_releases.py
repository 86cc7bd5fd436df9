"""New releases of HyperPod's image: an operation of the sandbox's own, for trying updates.

`GET /podwright/images` shows the newest release. `PUT` changes what it is given:

    {"latest": "1.1.0", "security": true}

With `security` nodes of older releases are SecurityUpdateRequired, else UpdateAvailable.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from werkzeug.wrappers import Request, Response

from .service import HyperPod

PATH = "/podwright/images"


def serve(hyperpod: HyperPod, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Serve one request."""
    request = Request(environ)
    if request.method == "PUT":
        try:
            specified = dict(json.loads(request.get_data()))
        except (TypeError, ValueError) as error:
            return Response(f"{error}\n", 400)(environ, start_response)
        if set(specified) - {"latest", "security"} or not re.fullmatch(
            r"\d+\.\d+\.\d+", str(specified.get("latest", "1.0.0"))
        ):
            return Response("known are latest, such as 1.1.0, and security\n", 400)(environ, start_response)
        hyperpod.images |= specified
    return Response(json.dumps(hyperpod.images), content_type="application/json")(environ, start_response)
