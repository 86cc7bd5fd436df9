"""SSH by key only, and not as root."""

from __future__ import annotations

from ..runner.applies import Only
from ..runner.drop_ins import drop_in
from ..runner.failure import Failure
from ..runner.node import Node

# sshd takes the first value it meets, and reads this folder in order of names.
FILE = "/etc/ssh/sshd_config.d/00-podwright.conf"
TEXT = """\
PermitRootLogin no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitEmptyPasswords no
X11Forwarding no
MaxAuthTries 4
LoginGraceTime 60
ClientAliveInterval 120
ClientAliveCountMax 5
"""


def reload(node: Node) -> None:
    """Let sshd check the file, and read it; a file that it refuses is taken away again."""
    # It is there only while sshd runs, and sshd checks nothing without.
    node.path("/run/sshd").mkdir(mode=0o755, parents=True, exist_ok=True)
    try:
        node.run("sshd", "-t")
    except Failure:
        node.remove(FILE)
        raise
    service = "ssh" if node.system.startswith("ubuntu") else "sshd"
    node.run("systemctl", "try-reload-or-restart", service)


STEP = drop_in(
    "ssh",
    applies_to=Only(also=lambda node: node.path("/etc/ssh/sshd_config").is_file()),
    files=lambda node: {FILE: TEXT},
    reload=reload,
)
