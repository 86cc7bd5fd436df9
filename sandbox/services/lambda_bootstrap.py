"""What a Lambda function's process runs: imports the handler, calls it once and writes the outcome.

The sandbox starts it with Python's isolated mode and no site-packages, so a handler finds the standard library, its own
code, its layers and boto3, as in AWS's Python runtime, and nothing else of this machine. The invocation comes as JSON
on standard input, the result goes as JSON to the file descriptor in argv, what the handler prints is its log.
"""

import importlib
import json
import os
import sys
import time
import traceback
from typing import Any


class Context:
    """The context object of the Lambda programming model for Python."""

    def __init__(self, invocation: dict[str, Any]) -> None:
        self.function_name = invocation["FunctionName"]
        self.function_version = "$LATEST"
        self.invoked_function_arn = invocation["FunctionArn"]
        self.memory_limit_in_mb = str(invocation["MemorySize"])
        self.aws_request_id = invocation["RequestId"]
        self.log_group_name = invocation["LogGroup"]
        self.log_stream_name = invocation["LogStream"]
        self.identity = None
        self.client_context = None
        self._deadline = time.monotonic() + invocation["Timeout"]

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the function's timeout."""
        return max(0, int((self._deadline - time.monotonic()) * 1000))


def main() -> None:
    """Run one invocation."""
    invocation = json.load(sys.stdin)
    sys.path[:0] = invocation["Path"]
    pause, scale = time.sleep, invocation["SleepScale"]
    # A handler that waits for something real waits as much shorter as the sandbox is faster.
    time.sleep = lambda seconds: pause(seconds * scale)
    module, _, name = invocation["Handler"].rpartition(".")
    try:
        # AWS allows a path in front of the module's name.
        handler = getattr(importlib.import_module(module.replace("/", ".")), name)
        result = {"result": handler(invocation["Event"], Context(invocation))}
        text = json.dumps(result)
    except BaseException as error:  # noqa: BLE001 - also SystemExit is the function's error, as in AWS
        traceback.print_exc()
        text = json.dumps({"error": {
            "errorMessage": str(error), "errorType": type(error).__name__,
            "stackTrace": traceback.format_tb(error.__traceback__),
        }})  # fmt: skip
    with os.fdopen(int(sys.argv[1]), "w") as output:
        output.write(text)


if __name__ == "__main__":
    main()
