"""A real Slurm for each HyperPod cluster, on one machine that the cluster's lifecycle scripts set up.

The machine runs slurmctld, slurmdbd and its database as the controller, and a slurmd for each running compute node. It
adds and removes nodes as HyperPod does, and runs new scripts (teams, limits) again. When the sandbox stops, Slurm's
jobs are lost. The scripts create accounts and limits again at the next start.
"""

import json
import logging
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import ClientError

from ..hyperpod.cluster import Cluster, Node
from ..protocol.clients import Clients
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject
from .configuration import SlurmNode, gres_conf, host_name, ports_of, resource_config, slurm_conf
from .machine import Machine, MachineError, missing

_READY_SECONDS: Final = 180.0
_STEPS_SECONDS: Final = 600.0
_POLL_SECONDS: Final = 0.1
# The machine has no containers and no NVLink between nodes.
_WITHOUT: Final = ("slurm-imex", "slurm-containers")
_OWN_LIST: Final = "/opt/ml/config/resource_config.json"
# Shortens the wait of a requeued job, which is two minutes by default.
_SHORTER: Final = "AuthInfo=cred_expire=30\n"
_STAND_INS: Final = """
install -m 755 /parts/srun /parts/sudo /parts/nvidia-smi /parts/aws /usr/local/bin
ln -sf /usr/local/bin/nvidia-smi /usr/bin/nvidia-smi
"""
_ABSENT: Final = "none of its compute nodes runs beside its controller yet"


@dataclass(frozen=True, slots=True)
class _Desired:
    """The desired state of a cluster's Slurm."""

    controller: SlurmNode
    nodes: tuple[SlurmNode, ...]
    scripts: str
    facts: JsonObject = field(compare=False)


@dataclass(slots=True)
class _Held:
    """The Slurm of a cluster: its machine, the applied state, and the state that failed with the reason."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    machine: Machine | None = None
    ports: dict[str, int] = field(default_factory=dict)
    """Ports of its nodes, by their addresses."""
    state: _Desired | None = None
    failed: tuple[_Desired, str] | None = None


class SlurmClusters:
    """The Slurm clusters of one account, each in its own folder."""

    def __init__(self, folder: Path, clients: Clients, real: bool) -> None:
        """Start without clusters. With `real`, clusters get a real Slurm if this machine can run it."""
        self._folder, self._clients, self._real = folder, clients, real
        self._held: dict[tuple[str, str], _Held] = {}
        self._facts: dict[str, JsonObject] = {}

    def why_not(self, cluster: Cluster) -> str:
        """Return the reason for which a cluster has no real Slurm; empty if it has one or will get one."""
        if reason := why_none_is_real(self._real):
            return reason
        if not self._facts_of(cluster):
            return "its lifecycle scripts are not podwright's"
        held = self._held.get((cluster.region, cluster.name))
        return held.failed[1] if held and held.failed and held.state is None else ""

    def follow(self, clusters: Iterable[Cluster]) -> None:
        """Update all of them from HyperPod's clusters, and stop those of deleted clusters.

        What fails is told in the log, and tried again once the cluster is another, or the sandbox starts anew.
        """
        existing = {(cluster.region, cluster.name): cluster for cluster in clusters if _is_slurm(cluster)}
        for key in self._held.keys() - existing.keys():
            self._delete(key)
        for key, cluster in existing.items():
            desired, held = self._desired(cluster), self._held.get(key)
            has_failed = held is not None and held.failed is not None and held.failed[0] == desired
            if has_failed or desired is None or self.why_not(cluster):
                continue
            try:
                self.enter(cluster)
            except MachineError as error:
                logging.warning("Slurm of %s is not what its cluster is: %s", cluster.name, error)

    def enter(self, cluster: Cluster) -> Machine:
        """Return the machine of a cluster after its update to the cluster's state.

        Raises:
            MachineError: It cannot be, for now or at all.
        """
        held = self._held.setdefault((cluster.region, cluster.name), _Held())
        with held.lock:
            desired = self._desired(cluster)
            if desired is None:
                raise MachineError(f"Slurm of {cluster.name} is not there: {_ABSENT}")
            if held.failed and held.failed[0] == desired:
                raise MachineError(held.failed[1])
            if held.machine is None or held.state != desired:
                try:
                    held.machine = self._brought(held, cluster, desired)
                except (MachineError, OSError, subprocess.TimeoutExpired, ClientError) as error:
                    held.failed = (desired, str(error))
                    raise MachineError(str(error)) from error
                held.state, held.failed = desired, None
            return held.machine

    def stop(self) -> None:
        """Stop all of them, including one that is starting."""
        for held in self._held.values():
            if held.machine:
                held.machine.stop()

    def _delete(self, key: tuple[str, str]) -> None:
        held = self._held.pop(key)
        with held.lock:
            if held.machine:
                held.machine.stop()
        shutil.rmtree(self._folder_of(*key), ignore_errors=True)

    def _folder_of(self, region: str, name: str) -> Path:
        return self._folder / region / name

    def _facts_of(self, cluster: Cluster) -> JsonObject:
        """Return the settings in the scripts of a cluster's controller; empty for scripts of other tools."""
        sources = [group.specification.get("LifeCycleConfig", {}) for group in cluster.groups.values()]
        for source in dict.fromkeys(config["SourceS3Uri"] for config in sources if "SourceS3Uri" in config):
            if facts := self._read_facts(cluster, source):
                return facts
        return {}

    def _read_facts(self, cluster: Cluster, scripts: str) -> JsonObject:
        """Return the node.json of published scripts, which is read once; empty without one."""
        if scripts not in self._facts:
            bucket, prefix = _split(scripts)
            try:
                body = self._clients.client("s3", cluster.region).get_object(Bucket=bucket, Key=f"{prefix}node.json")
                facts = json.loads(body["Body"].read())
            except ClientError:
                # It may be published later, so it is read again.
                return {}
            self._facts[scripts] = facts if facts.get("slurm") else {}
        return self._facts[scripts]

    def _desired(self, cluster: Cluster) -> _Desired | None:
        """Return the desired state; None without a controller or a compute node."""
        facts = self._facts_of(cluster)
        if not facts:
            return None
        head, login = facts["slurm"]["controller_group"], facts["slurm"]["login_groups"]
        running = [node for node in list(cluster.nodes) if _has_joined(node) and node.group in cluster.groups]
        controllers = [node for node in running if node.group == head]
        compute = [node for node in running if node.group not in (head, *login)]
        if not controllers or not compute:
            return None
        controller = controllers[0]
        scripts = controller.scripts or cluster.groups[controller.group].specification["LifeCycleConfig"]["SourceS3Uri"]
        facts = self._read_facts(cluster, scripts) or facts
        nodes = tuple(_slurm_node(cluster, node, facts) for node in compute)
        return _Desired(_slurm_node(cluster, controller, facts), nodes, scripts, facts)

    def _brought(self, held: _Held, cluster: Cluster, desired: _Desired) -> Machine:
        """Return the machine in the desired state. A new controller gets a new machine."""
        address, before = desired.controller.address, held.state
        machine = held.machine if before and before.controller == desired.controller else None
        if machine is None:
            held.state = None
            if held.machine:
                held.machine.stop()
            folder = self._folder_of(cluster.region, cluster.name)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            machine = held.machine = Machine.start(folder, host_name(address), [address])
            machine.says(_STAND_INS)
            if accounting := desired.facts["slurm"]["accounting"]:
                self._make_database(machine, cluster.region, accounting)
            before = None
        if before is None or before.scripts != desired.scripts:
            self._publish(cluster.region, desired.scripts, machine.bundle)
        held.ports = ports_of(desired.nodes, held.ports)
        self._configure(machine, cluster.name, desired, held.ports)
        return machine

    def _publish(self, region: str, scripts: str, bundle: Path) -> None:
        """Copy published scripts, as HyperPod does."""
        for path in bundle.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        s3, (bucket, prefix) = self._clients.client("s3", region), _split(scripts)
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            for entry in page.get("Contents", ()):
                file = bundle / entry["Key"].removeprefix(prefix)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(s3.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read())

    def _make_database(self, machine: Machine, region: str, accounting: JsonObject) -> None:
        """Return a MariaDB in place of the external database, with its name, port and user."""
        secrets = self._clients.client("secretsmanager", region)
        text = secrets.get_secret_value(SecretId=accounting["secret_arn"])["SecretString"]
        secret = json.loads(text)
        machine.put("/run/podwright-secret.json", f"{text}\n", 0o600)
        machine.put("/etc/mysql/mariadb.conf.d/90-elsewhere.cnf", f"[mariadb]\nport={accounting['port']}\n")
        machine.says(f"echo '127.0.0.1 {accounting['host']}' >>/etc/hosts; systemctl start mariadb")
        _until(machine, lambda: machine.shell("mariadb --execute 'SELECT 1'").returncode == 0, "MariaDB answers")
        user = f"'{secret['username']}'@'%'"
        grant = f"CREATE USER {user} IDENTIFIED BY '{secret['password']}'; GRANT ALL ON *.* TO {user};\n"
        machine.put("/run/podwright-user.sql", grant, 0o600)
        machine.says("mariadb </run/podwright-user.sql; rm /run/podwright-user.sql")

    def _configure(self, machine: Machine, cluster: str, desired: _Desired, ports: dict[str, int]) -> None:
        """Write the files of HyperPod's agent, run the steps of controller and compute nodes, and start the slurmds."""
        controller, nodes = desired.controller, desired.nodes
        addresses = " ".join(node.address for node in nodes)
        # Slurm reads the list of nodes only at its start.
        machine.says(
            f"""
            for address in {addresses}; do ip address replace "$address/32" dev eth0; done
            systemctl stop slurmctld
            """
        )
        partitions = desired.facts["slurm"]["partitions"]
        text = slurm_conf(cluster, controller.address, nodes, ports, partitions, _SHORTER)
        machine.put("/opt/slurm/etc/slurm.conf", text)
        machine.put("/opt/slurm/etc/gres.conf", gres_conf(nodes))
        for group in dict.fromkeys([controller.group, *(node.group for node in nodes)]):
            path = _OWN_LIST if group == controller.group else f"/run/{group}.json"
            machine.put(path, json.dumps(resource_config((controller, *nodes), group)) + "\n")
            _run_steps(machine, path)
        # The machine has no device files for Neuron devices, which the health check of all nodes would report.
        machine.says("sed -i 's/^NEURON=.*/NEURON=0/' /opt/slurm/etc/podwright-health.conf")
        # Running nodes read the new slurm.conf.
        machine.says("scontrol reconfigure")
        machine.start_daemons([node.name for node in nodes])
        # A slurmd ends if it requests its configuration while slurmctld reads it. systemd would restart it, too.
        states = "systemctl start slurmd; sinfo --noheader --Node --format=%T"
        # A star marks a node that has not responded yet.
        words = re.compile(r"unk|down|\*|inval")
        _until(machine, lambda: not words.search(machine.says(states)), "every node of Slurm answers")


def why_none_is_real(requested: bool) -> str:
    """Return the reason for which no Slurm cluster is real; empty if they are. `requested` is the sandbox's option."""
    if not requested:
        return "the sandbox was started without real parts"
    absent = missing()
    return f"this machine lacks {absent}" if absent else ""


def _run_steps(machine: Machine, own_list: str) -> None:
    """Run Slurm's steps as the first node of HyperPod's list. Raises MachineError if one fails."""
    result = machine.shell(
        f"cd /bundle && SAGEMAKER_RESOURCE_CONFIG_PATH={own_list} /parts/run_steps --without {' '.join(_WITHOUT)}",
        timeout=_STEPS_SECONDS,
    )
    if result.returncode:
        lines = [line for line in result.stdout.splitlines() if "error" in line or "fail" in line]
        logging.warning("Slurm's steps failed:\n%s%s", result.stdout, result.stderr)
        raise MachineError("; ".join(["a step of the controller or a node failed", *lines[-1:]]))


def _until(machine: Machine, condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition. Raises MachineError at the time limit."""
    end = time.monotonic() + _READY_SECONDS
    while not condition():
        if time.monotonic() > end:
            observed = machine.shell("sinfo -N -l; tail -n 20 /var/log/slurm/slurmctld.log /var/log/slurmd@*").stdout
            logging.warning("Slurm, when its time was over:\n%s", observed)
            raise MachineError(f"not so after {_READY_SECONDS:.0f} s: {what}; the sandbox's log has more")
        time.sleep(_POLL_SECONDS)


def _is_slurm(cluster: Cluster) -> bool:
    return "Eks" not in cluster.request.get("Orchestrator", {}) and cluster.outcome != "Deleting"


def _has_joined(node: Node) -> bool:
    """Return True if a node has been set up. A node that reboots or is updated remains in Slurm."""
    again = node.boots or node.checked or node.updating_until
    return not node.deleted and bool(again or node.status(now()) == "Running")


def _slurm_node(cluster: Cluster, node: Node, facts: JsonObject) -> SlurmNode:
    """Return Slurm's resources of a HyperPod node."""
    row: dict[str, Any] = facts["instance_types"][node.instance_type]
    threads = cluster.groups[node.group].specification.get("ThreadsPerCore", row["threads_per_core"])
    return SlurmNode(
        node.address,
        node.group,
        node.instance_type,
        node.instance_id,
        cpus=row["vcpu"] // row["threads_per_core"] * min(threads, row["threads_per_core"]),
        memory_mib=int(row["memory_gib"] * 1024),
        gpus=row["accelerator_count"] if row["accelerator_vendor"] == "nvidia" else 0,
    )


def _split(uri: str) -> tuple[str, str]:
    """Return the bucket and prefix of a folder in S3. The prefix ends with a slash unless it is empty."""
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    return bucket, f"{prefix.strip('/')}/" if prefix.strip("/") else ""
