"""Slurm's accounting: slurmdbd on the controller, with MariaDB beside it or a database elsewhere.

Where HyperPod's image has set accounting up, this only waits for it. Otherwise it has to stand before slurmctld starts
for the first time: a slurmctld without it gives the cluster an id of its own, and refuses to start with the one that
the database then knows (slurm-configuration fixes that where it happened).
"""

from __future__ import annotations

import json
import re
import secrets
import shutil

from ..runner import units
from ..runner.applies import Only
from ..runner.failure import Failure
from ..runner.node import Node
from ..runner.retry import retry, wait_until
from ..runner.steps import Step
from . import control

CONF = f"{control.ETC}/slurmdbd.conf"
# Files of this folder are read in the order of their names, and 50-server.cnf is the distribution's own.
MARIADB_CONF = "/etc/mysql/mariadb.conf.d/60-podwright-slurm.cnf"
MARIADB_TEXT = """\
# Slurm's accounting guide wants a large buffer pool and long lock waits (slurm.schedmd.com/accounting.html).
[mariadb]
innodb_buffer_pool_size=1G
innodb_lock_wait_timeout=900
"""
LOCAL_DATABASE = "slurm_acct_db"
START_SECONDS = 180


def by_image(node: Node) -> bool:
    """Whether slurm.conf has accounting that podwright did not write."""
    return control.settings(node).get("accountingstoragetype", "").lower() == "accounting_storage/slurmdbd"


def is_up(node: Node) -> bool:
    """Whether slurmdbd runs, by its file of today."""
    if not control.database_answers(_host(node)):
        return False
    return by_image(node) or (
        node.read(CONF) is not None and node.remembered(STEP.name).get("started") == _digest(node)
    )


def set_up(node: Node) -> None:
    """Make the database and its user, write slurmdbd.conf, start slurmdbd."""
    # Where the image has set accounting up, its database and password are its own; a second slurmdbd.conf would undo
    # them.
    if not by_image(node):
        external = node.facts["slurm"]["accounting"]
        user, password = _secret(node, external) if external else _local(node)
        text = conf_text(node, user, password)
        if node.read(CONF) != text:
            node.write(CONF, text, mode=0o600)
        # slurmdbd starts only when the file belongs to the user that it runs as, and nobody else reads it.
        # After the write: a file that is replaced gets root as its owner.
        shutil.chown(node.path(CONF), *slurm_user(node))
        node.run("systemctl", "enable", "slurmdbd")
        node.run("systemctl", "restart", "slurmdbd")
        node.remember(STEP.name, started=_digest(node))
    wait_until(
        node,
        lambda: control.database_answers(_host(node)),
        seconds=START_SECONDS,
        what="slurmdbd answers",
        next_step="see `journalctl -u slurmdbd`; a database elsewhere has to let this node through on its port",
    )


def conf_text(node: Node, user: str, password: str) -> str:
    """slurmdbd.conf."""
    external = node.facts["slurm"]["accounting"] or {"host": "localhost", "port": 3306, "database": LOCAL_DATABASE}
    hosts = control.controllers(node)
    # Slurm knows one backup of slurmdbd.
    backup = [f"DbdBackupHost={hosts[1][0]}"] if len(hosts) > 1 else []
    rows = [
        "# Written by podwright.",
        "AuthType=auth/munge",
        # slurmdbd compares the host with its own name; a controller's name need not resolve, so the address stands too.
        f"DbdHost={hosts[0][0]}",
        f"DbdAddr={hosts[0][1]}",
        *backup,
        f"DbdPort={control.DATABASE_PORT}",
        f"SlurmUser={control.settings(node).get('slurmuser', 'slurm')}",
        "LogFile=/var/log/slurm/slurmdbd.log",
        "PidFile=/run/slurmdbd/slurmdbd.pid",
        "StorageType=accounting_storage/mysql",
        f"StorageHost={external['host']}",
        f"StoragePort={external['port']}",
        f"StorageLoc={external['database']}",
        f"StorageUser={user}",
        f"StoragePass={password}",
    ]
    return "\n".join(rows) + "\n"


def settings(node: Node) -> dict[str, str]:
    """What slurm.conf has to say about it; nothing where the image said it."""
    if by_image(node):
        return {}
    hosts = [address for _, address in control.controllers(node)]
    # slurmctld turns to the second controller's slurmdbd when the first does not answer.
    backup = {"AccountingStorageBackupHost": hosts[1]} if len(hosts) > 1 else {}
    return {
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": hosts[0],
        **backup,
        "AccountingStoragePort": str(control.DATABASE_PORT),
        # Without a plug-in that gathers, `sacct` knows nothing of the memory that jobs used.
        "JobAcctGatherType": "jobacct_gather/linux",
    }


def _host(node: Node) -> str:
    hosts = control.controllers(node)
    return hosts[0][1] if hosts else "localhost"


def _local(node: Node) -> tuple[str, str]:
    """User and password of the database on this node, made if need be."""
    if node.read(MARIADB_CONF) != MARIADB_TEXT:
        node.write(MARIADB_CONF, MARIADB_TEXT)
        if units.is_active(node, "mariadb"):
            # A new MariaDB starts with the file; one that the image has started has to read it.
            node.run("systemctl", "restart", "mariadb")
    node.run("systemctl", "enable", "mariadb")
    node.run("systemctl", "start", "mariadb")
    # The password of an earlier run, so that running again does not cut off a slurmdbd that works.
    match = re.search(r"^StoragePass=(\S+)$", node.read(CONF) or "", re.MULTILINE)
    password = match[1] if match else secrets.token_hex(24)
    client = next((name for name in ("mariadb", "mysql") if shutil.which(name)), "mariadb")
    account = "'slurm'@'localhost'"
    statements = (
        f"CREATE DATABASE IF NOT EXISTS {LOCAL_DATABASE};"
        f"CREATE USER IF NOT EXISTS {account};"
        # CREATE USER IF NOT EXISTS leaves the password of a user that is there.
        f"ALTER USER {account} IDENTIFIED BY '{password}';"
        f"GRANT ALL ON {LOCAL_DATABASE}.* TO {account};"
    )
    # Over standard input: arguments of a process are there for all to read.
    retry(node, lambda: node.run(client, "--user=root", stdin=statements), seconds=60, what="MariaDB takes commands")
    return "slurm", password


def _secret(node: Node, external: dict[str, str]) -> tuple[str, str]:
    """User and password of the database elsewhere."""
    arguments = ("--secret-id", external["secret_arn"], "--region", node.facts["cluster"]["region"])
    query = ("--query", "SecretString", "--output", "text")
    text = retry(
        node,
        lambda: node.run("aws", "secretsmanager", "get-secret-value", *arguments, *query, timeout=60),
        seconds=120,
        what="the secret of the accounting database",
    )
    try:
        secret = json.loads(text)
        user, password = str(secret["username"]), str(secret["password"])
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(
            f"the secret {external['secret_arn']} holds no JSON with username and password ({type(error).__name__})",
            "give it both keys; podwright's own database has them",
        ) from error
    # slurmdbd.conf knows no quoting: a blank or # ends the value there.
    if re.search(r'[\s#"\\]', user + password):
        raise Failure(
            f"the secret {external['secret_arn']} has a blank, a quote, a backslash or # in username or password",
            "choose another password: slurmdbd.conf cannot hold these",
        )
    return user, password


def slurm_user(node: Node) -> tuple[int, int]:
    """User and group id that Slurm's daemons run as.

    Raises:
        Failure: this image has no such user.
    """
    name = control.settings(node).get("slurmuser", "slurm")
    for line in (node.read("/etc/passwd") or "").splitlines():
        fields = line.split(":")
        if fields[0] == name:
            return int(fields[2]), int(fields[3])
    raise Failure(f"slurm.conf says SlurmUser={name}, and /etc/passwd has no such user", "use a HyperPod Slurm image")


def _digest(node: Node) -> str:
    """What a running slurmdbd was started with, as far as facts tell; a changed secret needs a new boot."""
    return json.dumps([node.facts["slurm"]["accounting"], control.controllers(node)])


STEP = Step(
    "slurm-accounting",
    applies_to=Only(orchestrator="slurm", roles=("controller",)),
    check=is_up,
    apply=set_up,
    needs=("name-resolution", "slurm-conf"),
    seconds=600,
    attempts=3,
)
