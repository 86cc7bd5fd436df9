"""Runs the Python handlers of Lambda functions, each invocation in a new process.

It replaces moto's invocation, which uses Docker. The process has the function's environment variables, the credentials
of its role and boto3, and its clients reach only the sandbox. Other runtimes are refused.
"""

import base64
import json
import os
import sys
import threading
import uuid
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError
from moto.awslambda.models import LambdaFunction, LayerVersion, lambda_backends

from ..protocol.clients import Clients
from ..protocol.clock import now
from ..protocol.contents import Contents
from .function_processes import FunctionProcesses, TimedOutError

# boto3 and its dependencies, which AWS's Python runtime contains.
_RUNTIME_PACKAGES = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six")
# AWS repeats a failed asynchronous invocation twice, unless the function's settings say otherwise.
# Source: AWS Lambda Developer Guide, "Asynchronous invocation".
_RETRIES = 2

# Attribute of moto's functions and layers with the content of their archive.
_ARCHIVE = "code_bytes"


@dataclass(frozen=True)
class Result:
    """The outcome of an invocation."""

    payload: str
    failed: bool
    log: str


class Functions:
    """Runs the functions of an account.

    `contents` has their archives, and `directory` their unpacked code by digest. `authority` signs the certificates of
    the servers that they call.
    """

    def __init__(self, clients: Clients, directory: Path, contents: Contents, sleep_scale: float, authority: Path):
        self.clients, self.directory, self.contents = clients, directory, contents
        self.sleep_scale, self.authority = sleep_scale, authority
        self.processes = FunctionProcesses(self._runtime())
        self.running: Counter[str] = Counter()

    def run(self, function: LambdaFunction, event: Any) -> Result:
        """Call the handler once, wait for its end, and write its output to its log group."""
        if not str(function.run_time).startswith("python"):
            message = f"Functions with runtime {function.run_time} cannot run in the sandbox; only Python can (sandbox)"
            return Result(
                json.dumps({"errorType": "Sandbox.UnsupportedRuntime", "errorMessage": message}), True, message
            )
        request_id, stream = str(uuid.uuid4()), f"{now():%Y/%m/%d}/[$LATEST]{uuid.uuid4().hex}"
        configured: dict[str, str] = getattr(function, "logging_config", {})
        group = configured.get("LogGroup") or f"/aws/lambda/{function.function_name}"
        layers = [self._unpacked(vars(layer)[_ARCHIVE]) for layer in _layers(function)]
        code = self._unpacked(vars(function)[_ARCHIVE])
        invocation = {
            "Handler": function.handler,
            "Event": event,
            "FunctionName": function.function_name,
            "FunctionArn": function.function_arn,
            "MemorySize": function.memory_size,
            "RequestId": request_id,
            "LogGroup": group,
            "LogStream": stream,
            "Timeout": int(function.timeout),
            "SleepScale": self.sleep_scale,
            "Path": [str(code), *(str(layer / "python") for layer in layers)],
            "Folder": str(code),
            "Environment": self._environment(function),
        }
        result = self._process(function, invocation)
        self._write_log(function.region, group, stream, result.log)
        return result

    def start(self, function: LambdaFunction, event: Any) -> None:
        """Call the handler in the background, again if it fails, as AWS does with asynchronous invocations.

        A topic that the function names for failures gets the event in the end.
        """
        self.running[function.function_arn] += 1
        settings: dict[str, Any] = function.event_invoke_config[0].config if function.event_invoke_config else {}
        topic = settings.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")

        def attempts() -> None:
            try:
                for _ in range(1 + settings.get("MaximumRetryAttempts", _RETRIES)):
                    if not self.run(function, event).failed:
                        return
                if topic and ":sns:" in topic:
                    words = {"requestPayload": event, "requestContext": {"functionArn": function.function_arn}}
                    self.clients.client("sns", function.region).publish(TopicArn=topic, Message=json.dumps(words))
            finally:
                self.running[function.function_arn] -= 1

        threading.Thread(target=attempts, daemon=True, name=f"lambda {function.function_name}").start()

    def _process(self, function: LambdaFunction, invocation: dict[str, Any]) -> Result:
        """Run a function in a new Python process with the credentials of its role, and kill it at its time-out."""
        try:
            ended = self.processes.run(invocation, float(function.timeout))
        except TimedOutError as error:
            message = (
                f"{now():%Y-%m-%dT%H:%M:%SZ} {invocation['RequestId']} Task timed out after "
                f"{function.timeout:.2f} seconds"
            )
            return Result(json.dumps({"errorMessage": message}), True, f"{error}{message}")
        except (ConnectionError, TimeoutError) as error:
            message = f"RequestId: {invocation['RequestId']} Error: the sandbox cannot start functions: {error}"
            content = {"errorType": "Runtime.ExitError", "errorMessage": message}
            return Result(json.dumps(content), True, message)
        answer = (
            json.loads(ended.answer)
            if ended.answer
            else {
                "error": {
                    "errorType": "Runtime.ExitError",
                    "errorMessage": f"RequestId: {invocation['RequestId']} Error: Runtime exited",
                }
            }
        )
        if "error" in answer:
            return Result(json.dumps(answer["error"]), True, ended.log)
        return Result(json.dumps(answer["result"]), False, ended.log)

    def _environment(self, function: LambdaFunction) -> dict[str, str]:
        """Return the variables of Lambda and of a function's configuration, with credentials of its role."""
        role = self.clients.client("sts", function.region).assume_role(
            RoleArn=function.role, RoleSessionName=function.function_name[:64]
        )["Credentials"]
        return {
            "PATH": os.defpath,
            "LANG": "en_US.UTF-8",
            "TZ": ":UTC",
            "AWS_REGION": function.region,
            "AWS_DEFAULT_REGION": function.region,
            "AWS_LAMBDA_FUNCTION_NAME": function.function_name,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_size),
            "AWS_ACCESS_KEY_ID": role["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": role["SecretAccessKey"],
            "AWS_SESSION_TOKEN": role["SessionToken"],
            "AWS_ENDPOINT_URL": self.clients.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            # The function must not use profiles and credentials of the user who runs the sandbox.
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "NO_PROXY": "localhost",
            "SSL_CERT_FILE": str(self.authority),
            **{key: str(value) for key, value in function.environment_vars.items()},
        }

    def _unpacked(self, digest: str) -> Path:
        target = self.directory / digest[:32]
        if not target.exists():
            self.directory.mkdir(parents=True, exist_ok=True)
            partial = self.directory / f"{target.name}.{uuid.uuid4().hex}"
            with zipfile.ZipFile(self.contents.file(digest)) as archive:
                archive.extractall(partial)
            try:
                partial.rename(target)
            except OSError:
                if not target.exists():  # another invocation was faster otherwise
                    raise
        return target

    def _runtime(self) -> Path:
        target = self.directory / f"runtime-{sys.version_info.major}.{sys.version_info.minor}"
        target.mkdir(parents=True, exist_ok=True)
        for name in _RUNTIME_PACKAGES:
            spec, link = find_spec(name), target / name
            if spec is None or spec.origin is None or link.is_symlink():
                continue
            source = Path(spec.origin)
            source, link = (source.parent, link) if source.name == "__init__.py" else (source, target / source.name)
            if not link.is_symlink():
                link.symlink_to(source)
        return target

    def _write_log(self, region: str, group: str, stream: str, text: str) -> None:
        logs = self.clients.client("logs", region)
        try:
            logs.create_log_group(logGroupName=group)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceAlreadyExistsException":
                raise
        logs.create_log_stream(logGroupName=group, logStreamName=stream)
        timestamp = int(now().timestamp() * 1000)
        lines = [{"timestamp": timestamp, "message": line} for line in text.splitlines() if line] or [
            {"timestamp": timestamp, "message": "END"}
        ]
        # Maximum of PutLogEvents.
        logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=lines[:10_000])


class _Archive:
    """An attribute whose value is in a file: archives of layers have tens of megabytes, in many versions."""

    def __init__(self, functions_of: Callable[[str], Functions]):
        self.functions_of = functions_of

    def __get__(self, holder: Any, owner: type) -> bytes:
        return self.functions_of(holder.account_id).contents.file(vars(holder)[_ARCHIVE]).read_bytes()

    def __set__(self, holder: Any, content: bytes) -> None:
        vars(holder)[_ARCHIVE] = self.functions_of(holder.account_id).contents.keep(content)


def mount(functions_of: Callable[[str], Functions]) -> None:
    """Let moto's Invoke operation run the handler with the account's service."""
    construct = LambdaFunction.__init__

    def remember(function: Any, account_id: str, spec: dict[str, Any], *rest: Any, **more: Any) -> None:
        construct(function, account_id, spec, *rest, **more)
        function.logging_config = spec.get("LoggingConfig", {})

    def invoke(function: LambdaFunction, body: str, request_headers: Any, response_headers: dict[str, str]) -> Any:
        functions, event = functions_of(function.account_id), json.loads(body) if body else {}
        if request_headers.get("x-amz-invocation-type") == "Event":
            functions.start(function, event)
            return ""
        result = functions.run(function, event)
        if result.failed:
            response_headers["x-amz-function-error"] = "Unhandled"
        # Lambda returns the last 4 KB of the log.
        response_headers["x-amz-log-result"] = base64.b64encode(result.log[-4096:].encode()).decode()
        return result.payload.encode()

    for kind in (LambdaFunction, LayerVersion):
        setattr(kind, _ARCHIVE, _Archive(functions_of))
    LambdaFunction.__init__ = remember
    LambdaFunction.invoke = invoke  # pyrefly: ignore[bad-assignment]


def _layers(function: LambdaFunction) -> list[LayerVersion]:
    backend = lambda_backends[function.account_id][function.region]
    results = [backend.layers_versions_by_arn(layer["Arn"]) for layer in function.layers]
    return [layer for layer in results if layer is not None]
