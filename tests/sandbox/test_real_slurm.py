"""Slurm of a cluster in the sandbox: Debian's daemons, set up by published scripts, that follow the cluster's nodes."""

import base64
import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fake_node import publish
from needs import needs
from podwright.config.catalog.instance_types import catalog
from podwright.config.loading.load import environment_from
from podwright.config.loading.source import parse_source
from podwright.operations.aws import sandbox_server as server
from podwright.operations.aws import session
from podwright.operations.aws.account import Account
from podwright.operations.spend.team_budgets import standings_of_slurm
from podwright.planning.node.facts import ClusterFacts, FileSystems, node_facts
from podwright.planning.node.slurm_facts import slurm_facts
from podwright.sandbox.slurm import machine
from podwright.sandbox.slurm.configuration import SlurmNode, ports_of
from sandbox_network import Surroundings, surroundings
from waiting import until

real = needs(machine.missing() is None, str(machine.missing()))

Aws = Callable[[str], Any]
ACCOUNT, REGION, NAME = "123456789012", "us-west-2", "real"
FILE = """
name: real
account: "123456789012"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
cluster: {orchestrator: slurm}
instance_groups:
  controller: {instance_type: ml.m5.4xlarge, count: 1}
  gpu: {instance_type: ml.p5en.48xlarge, count: 2}
  cpu: {instance_type: ml.c5.18xlarge, count: 1}
  trn: {instance_type: ml.trn1.32xlarge, count: 1}
governance:
  priorities: {training: 70}
  teams:
    research:
      quota: {gpu: 1}
      borrow_limit_percent: 100
      users: [ada]
      budget: {accelerator_hours: 4, when_reached: hold}
users: {ada: {uid: 2001}}
"""
KINDS = {
    "controller": {"NodeType": "Controller"},
    "gpu": {"NodeType": "Compute", "PartitionNames": ["gpu"]},
    "cpu": {"NodeType": "Compute", "PartitionNames": ["cpu"]},
    "trn": {"NodeType": "Compute", "PartitionNames": ["trn"]},
}


def facts(text: str) -> dict[str, Any]:
    """node.json of an environment, as its cluster's stack publishes it."""
    environment = environment_from(parse_source(text, "real.yaml"), "real").environment
    cluster = {
        "name": NAME, "orchestrator": "slurm", "region": REGION, "dns_suffix": "amazonaws.com",
        "lifecycle": "strict", "setup_uri": "",
    }  # fmt: skip
    made = node_facts(
        cluster=ClusterFacts.model_validate(cluster),
        groups=environment.instance_groups,
        types=catalog(),
        file_systems=FileSystems(lustre={}, home=None),
        slurm=slurm_facts(
            settings=environment.cluster.slurm,  # pyrefly: ignore[bad-argument-type]
            groups=environment.instance_groups,
            governance=environment.governance,
            users=environment.users,
            user_groups=environment.user_groups,
            accounting=None,
            types=catalog(),
        ),
    )
    return made.model_dump(mode="json")


@cache
def account_at(endpoint: str) -> Account:
    """The account in a sandbox, with clients that are created once: each command on the controller needs two."""
    return Account(ACCOUNT, REGION, endpoint, {})


class SlurmCluster:
    """A cluster whose nodes have podwright's scripts, in a sandbox of its own with real parts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running = server.start(folder, port=0, time_scale=0.25, kubernetes="installed")
        self.around: Surroundings = surroundings(self.aws)
        self.counts = {"controller": 1, "gpu": 2, "cpu": 1, "trn": 1}
        self.types = {
            "controller": "ml.m5.4xlarge",
            "gpu": "ml.p5en.48xlarge",
            "cpu": "ml.c5.18xlarge",
            "trn": "ml.trn1.32xlarge",
        }
        self.scripts = ""

    def publish(self, prefix: str, text: str) -> None:
        """Publish the scripts of an environment; nodes get them when they are set up."""
        bundle = self.folder / prefix
        publish(bundle, facts(text))
        bucket = self.around.scripts.removeprefix("s3://").partition("/")[0]
        for file in filter(Path.is_file, bundle.rglob("*")):
            key = f"{prefix}/{file.relative_to(bundle)}"
            self.aws("s3").put_object(Bucket=bucket, Key=key, Body=file.read_bytes())
        self.scripts = f"s3://{bucket}/{prefix}/"

    def groups(self) -> list[dict[str, Any]]:
        return [
            {
                "InstanceGroupName": name,
                "InstanceType": self.types[name],
                "InstanceCount": count,
                "ExecutionRole": self.around.role,
                "LifeCycleConfig": {"SourceS3Uri": self.scripts, "OnCreate": "on_create.sh"},
                "SlurmConfig": KINDS[name],
            }
            for name, count in self.counts.items()
        ]

    def create(self) -> None:
        vpc = {"Subnets": self.around.subnets[:1], "SecurityGroupIds": [self.around.security_group]}
        self.aws("sagemaker").create_cluster(
            ClusterName=NAME,
            VpcConfig=vpc,
            InstanceGroups=self.groups(),
            NodeProvisioningMode="Continuous",
            Orchestrator={"Slurm": {}},
        )
        self.settled()

    def settled(self) -> None:
        """Wait until the cluster has the nodes that it should have, all running, and takes another update."""

        def is_so() -> bool:
            summaries = self.aws("sagemaker").list_cluster_nodes(ClusterName=NAME)["ClusterNodeSummaries"]
            names = [node["InstanceGroupName"] for node in summaries]
            running = all(node["InstanceStatus"]["Status"] == "Running" for node in summaries)
            in_service = self.aws("sagemaker").describe_cluster(ClusterName=NAME)["ClusterStatus"] == "InService"
            return running and in_service and {name: names.count(name) for name in self.counts} == self.counts

        until(is_so, "all nodes run")

    def software(self) -> None:
        """Have the nodes run what is published now."""
        self.aws("sagemaker").update_cluster(ClusterName=NAME, InstanceGroups=self.groups())
        self.settled()
        self.aws("sagemaker").update_cluster_software(ClusterName=NAME)
        describe = self.aws("sagemaker").describe_cluster
        until(lambda: describe(ClusterName=NAME)["ClusterStatus"] == "InService", "the software is updated")

    @property
    def account(self) -> Account:
        return account_at(self.running.endpoint)

    def aws(self, service: str) -> Any:
        """The client of a service."""
        return self.account.client(service)

    def command(self, line: str) -> list[str]:
        """The command line of a session that runs a line on the controller."""
        nodes = session.nodes(self.account, NAME)
        return session.one_command(self.account, next(node for node in nodes if node.group == "controller"), line)

    def says(self, line: str) -> str:
        """What a line prints on the controller."""
        done = subprocess.run(self.command(line), capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        first, _, rest = done.stdout.partition("\n")
        assert first == "Starting session", done.stdout
        return rest

    def names(self, partition: str = "dev*") -> list[str]:
        """The nodes of a partition."""
        rows = [line.split() for line in self.says("sinfo --noheader --Node --format='%N %P'").splitlines()]
        return [name for name, kind in rows if kind == partition]


def machines(folder: Path) -> list[str]:
    """The processes of this machine that hold a machine in a folder."""
    listed = subprocess.run(["pgrep", "--full", f"enter.sh {folder}"], capture_output=True, text=True)
    return listed.stdout.split()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    made = SlurmCluster(tmp_path_factory.mktemp("slurm").resolve())
    try:
        made.publish("first", FILE)
        made.create()
        yield made
    finally:
        server.stop(made.folder)
    assert machines(made.folder) == []


@real
def test_it_is_what_the_scripts_say(cluster: SlurmCluster) -> None:
    rows = set(cluster.says("sinfo --noheader --format='%P %D %c %m %G'").splitlines())
    assert {"gpu 2 192 2097152 gpu:8", "cpu 1 72 147456 (null)"} <= rows
    accounts = cluster.says("sacctmgr -nP show assoc format=Account,User,GrpTRES,DefaultQOS").split()
    assert {
        "research||cpu=192,gres/gpu=8|research_training",
        "research|ada||research_training",
        "research_borrow|ada||research_borrow",
    } <= set(accounts)
    # A job of the team on GPUs, which the health check of its node lets begin.
    batch = "sbatch --parsable --wait --partition=gpu --nodes=1 --gpus-per-node=8 --exclusive --output=/tmp/out"
    number = cluster.says(f"runuser -l ada -c \"{batch} --wrap 'id -un; nproc --all >/dev/null'\"; cat /tmp/out")
    assert number.split()[1:] == ["ada"], number
    for partition in ("cpu", "trn"):
        cluster.says(f"sbatch --parsable --wait --partition={partition} --output=/tmp/out --wrap true")
    assert cluster.says("sinfo --noheader --list-reasons") == ""


@real
def test_nobody_outside_reaches_it(cluster: SlurmCluster) -> None:
    """Its daemons listen in a network of their own, and what stands on this machine's loopback is not there."""
    listening = cluster.says("ss --listening --tcp --numeric --no-header | wc -l")
    assert int(listening) >= 4
    assert "refused" in cluster.says(f"exec 3<>/dev/tcp/127.0.0.1/{cluster.running.port}; true")
    for port in (6817, 6819):
        assert subprocess.run(["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}"], capture_output=True).returncode


@real
def test_a_session_is_its_owners_and_ends_with_its_command(cluster: SlurmCluster) -> None:
    running = cluster.command("exec -a lasting sleep 1000")
    answer = json.loads(running[-1])
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(answer["StreamUrl"], timeout=60)
    reader = subprocess.Popen(running, stdout=subprocess.DEVNULL)
    try:
        until(lambda: bool(cluster.says("pgrep --full --exact 'lasting 1000'; true")), "the command runs")
        # Ctrl-C is for who reads: he ends the session.
        reader.send_signal(signal.SIGINT)
        assert reader.poll() is None
        cluster.aws("ssm").terminate_session(SessionId=answer["SessionId"])
        assert cluster.says("pgrep --full --exact 'lasting 1000'; true") == ""
        assert reader.wait(600) == 0
    finally:
        reader.kill()
        reader.wait()


SLOW_SETSID = """\
printf '#!/bin/sh\\nsleep 0.5\\nexec /usr/bin/setsid "$@"\\n' >/usr/local/bin/setsid
chmod +x /usr/local/bin/setsid
"""


@real
def test_a_daemon_outlives_the_session_that_starts_it(cluster: SlurmCluster) -> None:
    """On a busy machine it leaves that session late."""
    cluster.says(SLOW_SETSID)
    try:
        cluster.says("systemctl restart slurmctld")
    finally:
        cluster.says("rm /usr/local/bin/setsid")
    until(lambda: "UP" in cluster.says("scontrol ping"), "the controller answers")


@real
def test_nodes_come_and_go_and_jobs_stay(cluster: SlurmCluster) -> None:
    before = cluster.names()
    number = cluster.says(f"sbatch --parsable --nodelist={before[0]} --wrap 'sleep 1000'").strip()
    shown = f"squeue --noheader --jobs={number} --format='%T %N'"
    until(lambda: cluster.says(shown).split() == ["RUNNING", before[0]], "the job runs")
    # The last is how many other tests expect.
    for count in (3, 2):
        cluster.counts["gpu"] = count
        cluster.aws("sagemaker").update_cluster(ClusterName=NAME, InstanceGroups=cluster.groups())
        cluster.settled()
        until(lambda count=count: len(cluster.names("gpu")) == count, f"Slurm has {count} nodes")
        assert cluster.says(shown).split() == ["RUNNING", before[0]]
    cluster.says(f"scancel {number}")
    assert cluster.names("cpu") == [name for name in before if name in cluster.names("cpu")]


AFTER_TWO_COMPARISONS = """\
scontrol setdebug debug2
compared() { grep --count "Testing job time limits" /var/log/slurm/slurmctld.log || true; }
before=$(compared)
until (($(compared) >= before + 2)); do sleep 0.5; done
scontrol setdebug info
"""
LAST_MONTH = """\
systemctl stop slurmctld
python3 - <<'END'
import pathlib, struct
file = pathlib.Path("/var/spool/slurmctld/priority_last_decay_ran")
ran, began = struct.unpack(">qq", file.read_bytes())
file.write_bytes(struct.pack(">qq", ran, began - 40 * 86400))
END
systemctl start slurmctld
"""


@real
def test_a_budget_holds_what_no_longer_fits_ends_nothing_and_begins_anew(cluster: SlurmCluster) -> None:
    """240 GPU-minutes, within the quota and borrowed."""
    accounts = cluster.says("sacctmgr -nP show assoc format=Account,User,ParentName,GrpTRESMins").split()
    assert {
        "research_budget||root|gres/gpu=240",
        "research||research_budget|",
        "research_borrow||research_budget|",
    } <= set(accounts)

    def submit(account: str, minutes: int) -> str:
        options = (
            f"--account={account} --time={minutes} --partition=gpu --gpus-per-node=8 --exclusive --output=/dev/null"
        )
        return cluster.says(f"runuser -l ada -c \"sbatch --parsable {options} --wrap 'sleep 3600'\"").strip()

    def state(job: str) -> list[str]:
        return cluster.says(f"squeue --noheader --jobs={job} --states=all --format='%T %r'").split()

    def becomes(job: str, expected: list[str]) -> None:
        """Wait for it; what the controller knows is told if it does not come."""
        try:
            until(lambda: state(job) == expected, f"job {job} is {expected}")
        except AssertionError as error:
            log = "/var/log/slurm/slurmctld.log"
            known = f"squeue; sinfo --list-reasons; scontrol show assoc_mgr flags=assoc; tail --lines=60 {log}"
            raise AssertionError(f"{error}\n{cluster.says(known)}") from error

    runs = submit("research", 20)
    becomes(runs, ["RUNNING", "None"])
    waits = submit("research_borrow", 20)
    becomes(waits, ["PENDING", "AssocGrpGRESMinutes"])
    # A shorter one fits, and does not wait behind it.
    short = submit("research_borrow", 5)
    becomes(short, ["RUNNING", "None"])
    cluster.says(f"scancel {short} {waits}")

    # Whoever lowers a budget ends nothing that runs, even far above it.
    cluster.says("sacctmgr --immediate modify account where name=research_budget set GrpTRESMins=gres/gpu=1")
    # Slurm compares running jobs with their limits every 30 s. The first comparison may have begun before the change.
    cluster.says(AFTER_TWO_COMPARISONS)
    assert state(runs)[0] == "RUNNING"
    cluster.says(f"scancel {runs}")
    cluster.says("sacctmgr --immediate modify account where name=research_budget set GrpTRESMins=gres/gpu=163")

    def used() -> float:
        environment = environment_from(parse_source(FILE, "real.yaml"), "real").environment
        (standing,) = standings_of_slurm(environment, cluster.account, datetime.now(UTC))
        return standing.used

    # Half a minute of eight GPUs, four GPU-minutes: with them, 20 minutes of eight GPUs exceed the budget.
    until(lambda: used() > 0.06, "what ended is counted")
    waits = submit("research_borrow", 20)
    becomes(waits, ["PENDING", "AssocGrpGRESMinutes"])
    # The next month: Slurm keeps in two numbers when it counted last, and when it began anew.
    script = base64.b64encode(LAST_MONTH.encode()).decode()
    cluster.says(f"echo {script} | base64 -d | bash -e")
    becomes(waits, ["RUNNING", "None"])
    assert used() < 0.05
    cluster.says(f"scancel {waits}")


@real
def test_what_is_published_anew_is_run_with_the_next_software(cluster: SlurmCluster) -> None:
    cluster.publish("second", FILE.replace("    research:", "    vision:"))
    accounts = "sacctmgr -nP show account format=Account"
    assert "research" in cluster.says(accounts).split()
    cluster.software()
    until(lambda: "vision" in cluster.says(accounts).split(), "the new team has its account")
    assert "research" not in cluster.says(accounts).split()


# The last but one: jobs are gone afterwards.
@real
def test_it_stops_and_starts_with_the_sandbox(cluster: SlurmCluster) -> None:
    assert len(machines(cluster.folder)) >= 1
    os.kill(cluster.running.pid, signal.SIGKILL)
    until(lambda: machines(cluster.folder) == [], "nothing of it stays, however the sandbox ends")
    cluster.running = server.start(cluster.folder, time_scale=0.25, kubernetes="installed")
    # What was not saved yet when it was killed is not asked for.
    assert "root" in cluster.says("sacctmgr -nP show account format=Account").split()


# The last one.
@real
def test_it_goes_with_its_cluster(cluster: SlurmCluster) -> None:
    assert cluster.says("scontrol ping").startswith("Slurmctld(primary)")
    folder = cluster.folder / server.STATE_DIRECTORY / "slurm" / ACCOUNT / REGION / NAME
    assert folder.is_dir()
    cluster.aws("sagemaker").delete_cluster(ClusterName=NAME)
    until(lambda: not folder.exists() and machines(cluster.folder) == [], "its machine is gone")


def test_a_node_that_stays_keeps_its_port() -> None:
    first, second, third = (SlurmNode(f"10.0.0.{number}", "gpu", "ml.p5en.48xlarge") for number in (1, 2, 3))
    before = ports_of([first, second], {})
    after = ports_of([second, third], before)
    assert after[second.address] == before[second.address]
    assert len(set(after.values())) == len(after) == 2


def refused(aws: Aws, around: Surroundings, name: str) -> str:
    """What a session says on the controller of a cluster whose scripts are not podwright's."""
    group = {
        "InstanceGroupName": "controller",
        "InstanceType": "ml.m5.4xlarge",
        "InstanceCount": 1,
        "ExecutionRole": around.role,
        "LifeCycleConfig": {"SourceS3Uri": around.scripts, "OnCreate": "on_create.sh"},
        "SlurmConfig": KINDS["controller"],
    }
    vpc = {"Subnets": around.subnets[:1], "SecurityGroupIds": [around.security_group]}
    arn = aws("sagemaker").create_cluster(ClusterName=name, VpcConfig=vpc, InstanceGroups=[group])["ClusterArn"]
    (node,) = aws("sagemaker").list_cluster_nodes(ClusterName=name)["ClusterNodeSummaries"]
    target = session.ClusterNode(arn, "controller", node["InstanceId"]).target
    with pytest.raises(ClientError, match="TargetNotConnected") as caught:
        aws("ssm").start_session(
            Target=target, DocumentName="AWS-StartNonInteractiveCommand", Parameters={"command": ["true"]}
        )
    with pytest.raises(ClientError, match="TargetNotConnected"):
        aws("ssm").start_session(Target=target)
    return caught.value.response["Error"]["Message"]


@real
def test_other_scripts_have_none(cluster: SlurmCluster) -> None:
    assert "its lifecycle scripts are not podwright's (sandbox)" in refused(cluster.aws, cluster.around, "foreign")


def test_a_sandbox_without_real_parts_says_so(aws: Aws) -> None:
    message = refused(aws, surroundings(aws), "without-parts")
    assert message.startswith("the node is simulated and runs no Slurm: the sandbox was started without real parts")


def test_a_machine_that_lacks_something_says_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.shutil, "which", lambda name: None if name == "slurmdbd" else f"/bin/{name}")
    monkeypatch.setattr(machine.os, "geteuid", lambda: 0)
    assert machine.missing() == "slurmdbd of Debian's packages for Slurm, MariaDB and munge"
    monkeypatch.setattr(machine.os, "geteuid", lambda: 1000)
    assert machine.missing() == "root, for a file system and a network of its own"
