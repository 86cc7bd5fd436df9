"""Keeps logs from filling the root volume, which does not grow."""

from __future__ import annotations

from ..runner.applies import Only
from ..runner.drop_ins import drop_in
from ..runner.node import Node

ROTATION = "/etc/logrotate.d/podwright"
JOURNAL = "/etc/systemd/journald.conf.d/50-podwright.conf"
# copytruncate: HyperPod's agent keeps the file open.
_ROTATION_TEXT = """\
/var/log/provision/*.log /var/log/provision/*.jsonl {
    size 50M
    rotate 4
    compress
    missingok
    notifempty
    copytruncate
}
"""
_JOURNAL_TEXT = "[Journal]\nSystemMaxUse=4G\nMaxRetentionSec=1month\n"


def reload(node: Node) -> None:
    """Let logrotate check its file, and journald read its own."""
    if _rotates(node):
        node.run("logrotate", "--debug", str(node.path(ROTATION)))
    node.run("systemctl", "try-restart", "systemd-journald")


STEP = drop_in(
    "log-rotation",
    applies_to=Only(),
    files=lambda node: {**({ROTATION: _ROTATION_TEXT} if _rotates(node) else {}), JOURNAL: _JOURNAL_TEXT},
    reload=reload,
)


def _rotates(node: Node) -> bool:
    return node.path("/etc/logrotate.d").is_dir()
