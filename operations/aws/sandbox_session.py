"""Reads a session of the sandbox, as session-manager-plugin reads one of AWS: `sandbox_session.py ANSWER`.

ANSWER is what StartSession answered, as JSON. What the session's command prints goes to stdout, a line at once.
"""

import json
import signal
import sys
import urllib.request


def main() -> None:
    """Write the output of a session, and end with it."""
    # Ctrl-C is for who called this, and ends the session with what it runs.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answer = json.loads(sys.argv[1])
    headers = {"Authorization": f"Bearer {answer['TokenValue']}"}
    request = urllib.request.Request(answer["StreamUrl"], headers=headers)
    # Loopback, whatever proxy the shell names.
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as output:
        for line in output:
            sys.stdout.buffer.write(line)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
