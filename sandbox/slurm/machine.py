"""A machine for Debian's Slurm in namespaces of this one, whose network is not reachable from outside.

It has a temporary layer over this machine's file system, and its own processes, network and host name. It ends with the
process that started it, also if that is killed.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...config.errors import PodwrightError

PARTS: Final = Path(__file__).parent / "parts"
"""Programs that replace others in the machine, where their folder is /parts."""
PROGRAMS: Final = ("slurmctld", "slurmd", "slurmdbd", "sacctmgr", "mariadbd", "munged", "unshare", "nsenter", "ip")
_MOST_GPUS: Final = 16
_STOP_SECONDS: Final = 120
_VARIABLES: Final = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
# HyperPod's image has Slurm in /opt/slurm.
_PREPARE: Final = f"""
install -m 755 /parts/systemctl /usr/local/bin/systemctl
mkdir -p /opt/slurm/etc /opt/slurm/bin /run/munge /run/mysqld /opt/gpus
for ((number = 0; number < {_MOST_GPUS}; number++)); do mknod /opt/gpus/gpu$number c 1 3; done
echo '# Empty on a new cluster.' >/opt/slurm/etc/accounting.conf
rm -rf /etc/slurm && ln -s /opt/slurm/etc /etc/slurm
for tool in scontrol sacctmgr squeue sinfo; do ln -s /usr/bin/$tool /opt/slurm/bin/; done
chown munge: /run/munge && chown mysql: /run/mysqld
setpriv --reuid munge --regid munge --init-groups munged
"""


class MachineError(PodwrightError):
    """A machine does not start, or a command in it fails. The message is its output."""


def missing() -> str | None:
    """Return what this system lacks for such a machine; None if it lacks nothing."""
    if os.geteuid() != 0:
        return "root, for a file system and a network of its own"
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"{', '.join(absent)} of Debian's packages for Slurm, MariaDB and munge" if absent else None


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine, used from outside."""

    bundle: Path
    """The folder of its /bundle, with the files that HyperPod would copy from S3."""
    pid: int
    _process: subprocess.Popen[str]

    @classmethod
    def start(cls, folder: Path, name: str, addresses: Iterable[str]) -> "Machine":
        """Start a machine with munge and an empty /opt/slurm.

        Args:
            folder: An empty folder for it.
            name: Its host name.
            addresses: What its network card answers to.

        Raises:
            MachineError: This machine does not allow it.
        """
        root, bundle = folder / "machine", folder / "bundle"
        root.mkdir()
        bundle.mkdir()
        own = ("--mount", "--pid", "--net", "--uts", "--fork", "--kill-child", "--propagation=private")
        process = subprocess.Popen(
            ["unshare", *own, "bash", str(PARTS / "enter.sh"), str(root), str(bundle), str(PARTS), name, *addresses],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        if (line := process.stdout.readline()) != "ready\n":
            raise MachineError(f"no machine for Slurm can be made here: {line}{process.communicate()[0]}".strip())
        # The only child of unshare is the first process of the machine.
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
        machine = cls(bundle, int(children[0]), process)
        machine.says(_PREPARE)
        return machine

    def command(self, *words: str) -> list[str]:
        """Return the command line that runs a command in it as root."""
        enter = ("nsenter", f"--target={self.pid}", "--mount", "--pid", "--net", "--uts", "--root", "--wdns=/")
        return [*enter, "env", "-i", *(f"{key}={value}" for key, value in _VARIABLES.items()), *words]

    def shell(self, script: str, *, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Run bash lines in it as root."""
        command = self.command("bash", "-euo", "pipefail", "-c", script)
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)

    def says(self, script: str, *, timeout: float = 60) -> str:
        """Run bash lines and return their output. Raises MachineError if they fail."""
        result = self.shell(script, timeout=timeout)
        if result.returncode:
            raise MachineError(f"{script.strip()}\n{result.stdout}{result.stderr}".strip())
        return result.stdout

    def put(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file of the machine."""
        self.says(f"mkdir -p $(dirname {path}); cat >{path} <<'END_OF_FILE'\n{text}END_OF_FILE\nchmod {mode:o} {path}")

    def start_daemons(self, names: Sequence[str]) -> None:
        """Run a slurmd for each of these nodes, and stop all others."""
        self.says(
            f"""
            touch /run/slurm-nodes
            grep -vxF {"".join(f"-e {name} " for name in names)} /run/slurm-nodes >/run/gone || true
            while read -r name; do systemctl stop "slurmd@$name"; done </run/gone
            printf '%s\\n' {" ".join(names)} >/run/slurm-nodes
            systemctl start slurmd
            """,
            timeout=_STOP_SECONDS,
        )

    def stop(self) -> None:
        """Stop it with all its processes, and delete its files."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(_STOP_SECONDS)
        self._process.stdout.close()
