"""Where custom resources' answers arrive: the pre-signed response URLs of CloudFormation."""

import json
import threading
from collections.abc import Iterable
from typing import Any

from werkzeug.wrappers import Request, Response

from ..protocol.json_objects import JsonObject

PREFIX = "/podwright/responses/"
# Source: AWS CloudFormation User Guide, "Custom resource response objects".
_LONGEST = 4096


class ResponseBox:
    """Holds the answers that were PUT, by request id."""

    def __init__(self) -> None:
        self._answers: dict[str, JsonObject] = {}
        self._arrived = threading.Condition()

    def put(self, request_id: str, body: bytes) -> None:
        """Keep an answer; one that CloudFormation would not take becomes a failure."""
        if len(body) > _LONGEST:
            answer: JsonObject = {"Status": "FAILED", "Reason": "Response object is too long."}
        else:
            answer = json.loads(body)
        with self._arrived:
            self._answers.setdefault(request_id, answer)
            self._arrived.notify_all()

    def take(self, request_id: str, seconds: float) -> JsonObject | None:
        """The answer to a request, waiting for it at most this long."""
        with self._arrived:
            self._arrived.wait_for(lambda: request_id in self._answers, seconds)
            return self._answers.pop(request_id, None)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Accept a PUT, as S3 does for the pre-signed URL."""
        request = Request(environ)
        if request.method != "PUT":
            return Response(status=405)(environ, start_response)
        self.put(request.path.removeprefix(PREFIX), request.get_data())
        return Response()(environ, start_response)


RESPONSES = ResponseBox()
