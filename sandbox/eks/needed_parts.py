"""The parts of the control plane that environments need, which a deployment announces.

`PUT /podwright/control-plane` takes `{"two-teams": ["kueue"]}` and answers with the kind of each environment's cluster
and its missing parts. `GET` answers for each announced environment and each cluster, with the number of real nodes.
"""

import json
from collections.abc import Iterable
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from werkzeug.wrappers import Request, Response

from ...config.catalog.sandbox_account import CONTROL_PLANE
from ..control_plane.pins import pins
from ..protocol.known_names import check_known
from .service import Eks

PATH: Final = CONTROL_PLANE
_NEEDS: Final = TypeAdapter(dict[str, list[str]])


def serve(eks: Eks, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Serve one request to PATH."""
    request = Request(environ)
    if request.method == "PUT":
        try:
            needs = _NEEDS.validate_json(request.get_data())
            known = [part.name for part in pins().parts]
            check_known("part", [name for parts in needs.values() for name in parts], known)
        except (ValidationError, ValueError) as error:
            return Response(f"{error}\n", 400)(environ, start_response)
        eks.control_planes.note_needs(needs)
        names = {*needs}
    else:
        names = {*eks.control_planes.announced, *(cluster for _, cluster in list(eks.clusters))}
    described = {name: eks.control_plane(name) for name in sorted(names)}
    return Response(json.dumps(described), content_type="application/json")(environ, start_response)
