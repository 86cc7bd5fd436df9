"""The parts of the control plane that environments need, as a deployment announces them.

`PUT /podwright/control-plane` takes `{"two-teams": ["kueue"]}` and answers with what the cluster of each environment is
or becomes, and the parts that it lacks. `GET` answers for every environment that was announced, and for each
cluster by its name: also how many nodes of a real one are real.
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
