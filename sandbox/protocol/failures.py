"""Errors for operations that moto lacks or fails in, which SDKs can parse and do not retry."""

import json
import logging
import socket
from collections.abc import Callable, Iterable
from typing import Any
from xml.sax.saxutils import escape

from botocore.exceptions import ClientError, ReadTimeoutError
from flask import Flask
from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.wrappers import Response

_LOG = logging.getLogger(__name__)
Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


def backend_app(service: Any) -> Flask:
    """Moto's application of one service, which raises errors instead of returning HTML."""
    app = create_backend_app(service)
    # Flask's debugging keeps each request with its body in a reference cycle.
    app.debug = False
    app.config["PROPAGATE_EXCEPTIONS"] = True
    return app


def readable(application: Application) -> Application:
    """Return the application, with moto's errors converted to the caller's protocol."""

    def serve(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Serve one request."""
        try:
            return application(environ, start_response)
        except NotImplementedError as error:
            # moto's answer to operations that it lacks.
            return answer(environ, "NotImplemented", f"{error} (sandbox)")(environ, start_response)
        except ReadTimeoutError:
            # A fault of the sandbox drops the response.
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            return []
        except ClientError as error:
            # The error of a call from one of podwright's services to another.
            detail = error.response["Error"]
            return answer(environ, detail["Code"], detail["Message"])(environ, start_response)
        except Exception as error:  # noqa: BLE001 - the caller gets it, the log its traceback
            _LOG.exception("%s %s failed", environ["REQUEST_METHOD"], environ["PATH_INFO"])
            return answer(environ, "SandboxFailure", f"moto failed: {error!r} (sandbox)")(environ, start_response)

    return serve


def answer(environ: dict[str, Any], code: str, message: str, status: int = 400) -> Response:
    """Return an error in the form that the service's SDK parses."""
    # SDKs retry 500 and 501.
    is_form = environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded")
    if is_form or "/s3/" in environ.get("HTTP_AUTHORIZATION", ""):
        error = f"<Error><Type>Sender</Type><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
        body = f"<ErrorResponse>{error}<RequestId>sandbox</RequestId></ErrorResponse>" if is_form else error
        return Response(body, status, content_type="text/xml")
    body = json.dumps({"__type": code, "message": message, "Message": message})
    return Response(body, status, {"x-amzn-ErrorType": code}, content_type="application/json")
