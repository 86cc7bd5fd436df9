"""New releases of HyperPod's image, an operation of the sandbox for testing updates.

`GET /podwright/images` returns the newest release. `PUT` changes it:

    {"latest": "1.1.0", "security": true}

With `security`, nodes of older releases are SecurityUpdateRequired, otherwise UpdateAvailable.
"""

import json
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError
from werkzeug.wrappers import Request, Response

from .service import HyperPod

PATH = "/podwright/images"


class _Release(BaseModel):
    """The body of a `PUT`."""

    model_config = ConfigDict(extra="forbid")
    latest: str = Field(default="", pattern=r"^\d+\.\d+\.\d+$")
    security: StrictBool = False


def serve(hyperpod: HyperPod, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Serve one request."""
    request = Request(environ)
    if request.method == "PUT":
        try:
            release = _Release.model_validate_json(request.get_data())
        except ValidationError as error:
            return Response(f"{error}\n", 400)(environ, start_response)
        hyperpod.images |= release.model_dump(exclude_unset=True)
    return Response(json.dumps(hyperpod.images), content_type="application/json")(environ, start_response)
