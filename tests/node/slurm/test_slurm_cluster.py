"""A Slurm cluster of Debian's daemons, set up by our steps: slurmctld, four slurmd, slurmdbd with MariaDB, munge."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from needs import needs
from podwright.config.catalog.instance_types import environment_types
from podwright.config.loading.load import environment_from
from podwright.config.loading.source import parse_source
from podwright.operations.jobs.slurm_jobs import FORMAT, rows_of
from podwright.planning.jobs.batch_script import batch_script
from podwright.sandbox.slurm.machine import missing
from simulated_slurm import COMPUTE, NODES, SimulatedSlurmCluster, node_facts, simulated_slurm_cluster

pytestmark = needs(missing() is None, str(missing()))

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHnCk"


def team(name: str, user: str, quota: int, borrow: int | None, **settings: Any) -> dict[str, Any]:
    """A team with a quota of GPUs."""
    return {
        "name": name,
        "quota": {"cpu": 8, "gres/gpu": quota} if quota else {},
        "borrow": None if borrow is None else {"cpu": 8, "gres/gpu": borrow},
        "weight": 50,
        "share": "lend" if borrow is None else "lend_and_borrow",
        "borrow_limit_percent": 100,
        "preempt": "lower_priority",
        "budget_minutes": None,
        "users": [user],
        **settings,
    }


SLURM: dict[str, Any] = {
    "configuration": "provisioning_parameters",
    "strategy": "merge",
    "controller_group": "controller",
    "login_groups": [],
    "partitions": {"h200": ["h200"]},
    "accounting": None,
    "shared_directory": "/srv/shared",
    "failover_topic": "arn:aws:sns:us-west-2:111122223333:failover",
    "groups": [{"name": "ml", "gid": 3000}],
    "users": [
        {"name": name, "uid": uid, "gid": uid, "groups": ["ml"], "ssh_keys": [f"{KEY} {name}"]}
        for uid, name in ((2001, "ada"), (2002, "bob"))
    ],
    "teams": [team("research", "ada", 16, 16), team("product", "bob", 16, None)],
    "priorities": {"inference": 100, "training": 70},
    "fair_share": True,
    "budget_period": None,
}
CONTROLLER_STEPS = {
    "slurm-users", "slurm-conf", "slurm-topology", "slurm-accounting", "slurm-failover", "slurm-configuration",
    "slurm-daemons", "slurm-associations", "slurm-refresh",
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster() -> Iterator[SimulatedSlurmCluster]:
    """A cluster that has come up."""
    with simulated_slurm_cluster() as simulated:
        # The prolog asks for GPUs; a file makes one of the nodes lose some.
        simulated.put(
            "/usr/local/bin/nvidia-smi",
            "#!/bin/bash\ncount=8\n[[ ! -e /run/broken-$SLURMD_NODENAME ]] || count=7\n"
            'for ((gpu = 0; gpu < count; gpu++)); do echo "GPU $gpu: NVIDIA H200"; done\n',
            mode=0o755,
        )
        simulated.put("/usr/local/bin/aws", '#!/bin/bash\nprintf "%s\\n" "$(id -un) $*" >>/tmp/published\n', mode=0o755)
        simulated.says("ln -s /usr/local/bin/nvidia-smi /usr/bin/nvidia-smi")
        simulated.publish(node_facts(SLURM))
        controller = simulated.steps("controller")
        assert {
            name for name, outcome in controller.items() if outcome in ("changed", "unchanged")
        } == CONTROLLER_STEPS, controller["log"]
        compute = simulated.steps("h200")
        assert compute["slurm-health"] == compute["slurm-daemons"] == "changed", compute["log"]
        simulated.until(lambda: simulated.says("sinfo -h -p h200 -t idle -o %D").strip() == "4", "four nodes are idle")
        yield simulated


@pytest.fixture(autouse=True)
def clean(cluster: SimulatedSlurmCluster) -> Iterator[None]:
    """No job and no drained node is left for the next test."""
    yield
    cluster.says("scancel --user=ada; scancel --user=bob; rm -f /run/broken-* /tmp/log.*")
    cluster.until(lambda: not cluster.says("squeue -h"), "no job is left")
    cluster.says(f"scontrol update NodeName={','.join(NODES)} State=RESUME 2>/dev/null || true")
    cluster.until(lambda: cluster.says("sinfo -h -p h200 -t idle -o %D").strip() == "4", "four nodes are idle")


def submit(cluster: SimulatedSlurmCluster, user: str, options: str, command: str = "sleep 100") -> str:
    """Submit as that user; the number of the job."""
    batch = f"sbatch --parsable --output=/tmp/log.%j --time=10 {options} --wrap '{command}'"
    return cluster.says(f"cd /tmp && setpriv --reuid {user} --regid {user} --init-groups {batch}").strip()


FILE = """
name: test
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
cluster: {orchestrator: slurm}
instance_groups:
  controller: {instance_type: ml.m5.4xlarge, count: 1}
  h200: {instance_type: ml.p5en.48xlarge, count: 4}
governance: {priorities: {inference: 100, training: 70}, teams: {research: {quota: {h200: 2}}}}
jobs:
  llama: {kind: sbatch, team: research, group: h200, priority: inference, nodes: 2, vcpu: 1, image: "/tmp/a.sqsh",
    command: [torchrun, train.py], env: {NOTE: a b}, output: /tmp/log.%j}
"""
# HyperPod's own option and those of pyxis are none of Debian's.
SRUN = """#!/bin/bash
for word in "$@"; do [[ $word == --container-* || $word == --auto-resume=1 ]] || words+=("$word"); done
exec /usr/bin/srun "${words[@]}"
"""


def job(cluster: SimulatedSlurmCluster, number: str) -> dict[str, str]:
    """What Slurm knows about a job."""
    return dict(
        word.split("=", 1) for word in cluster.says(f"scontrol show job {number} --oneliner").split() if "=" in word
    )


def state(cluster: SimulatedSlurmCluster, number: str) -> str:
    return job(cluster, number)["JobState"]


def log(cluster: SimulatedSlurmCluster, number: str) -> str:
    """What a job has written; running, it may not have written yet."""
    return cluster.says(f"cat /tmp/log.{number} || true")


def gpus(count: int) -> str:
    """Options of a job with that many GPUs, eight of each node."""
    return f"--nodes={count // 8} --ntasks-per-node=1 --gres=gpu:8"


def test_a_second_run_changes_nothing(cluster: SimulatedSlurmCluster) -> None:
    def observe() -> str:
        newer = "find /opt/slurm /etc -newer /opt/slurm/etc/podwright.conf -type f"
        return cluster.says(f"pgrep -x slurmctld; pgrep -x slurmd; pgrep -x slurmdbd; {newer} | sort")

    before = observe()
    for group in ("controller", "h200"):
        outcomes = cluster.steps(group)
        outcomes.pop("log")
        assert set(outcomes.values()) <= {"unchanged", "not-needed"}, outcomes
    assert observe() == before


def test_people_have_their_ids_homes_and_keys(cluster: SimulatedSlurmCluster) -> None:
    assert cluster.says("id ada").strip() == "uid=2001(ada) gid=2001(ada) groups=2001(ada),3000(ml)"
    assert cluster.says("stat -c '%U %a' /home/ada").strip() == "ada 700"
    assert cluster.says("cat /etc/ssh/podwright_keys/ada").strip() == f"{KEY} ada"
    assert "try-reload-or-restart ssh" in cluster.says("cat /run/systemctl.log")


def test_what_a_user_gets_without_asking_is_the_lowest_class(cluster: SimulatedSlurmCluster) -> None:
    one = submit(cluster, "ada", gpus(8))
    assert (job(cluster, one)["Account"], job(cluster, one)["QOS"]) == ("research", "research_training")
    assert cluster.shell("setpriv --reuid ada --regid ada --init-groups sbatch -A product --wrap true").returncode != 0


def test_nobody_outside_a_team_submits(cluster: SimulatedSlurmCluster) -> None:
    refused = cluster.shell("cd /tmp && setpriv --reuid nobody --regid nogroup --clear-groups sbatch --wrap true")
    assert "Invalid account or account/partition combination" in refused.stderr


def test_a_job_larger_than_the_quota_is_refused(cluster: SimulatedSlurmCluster) -> None:
    refused = cluster.shell(f"cd /tmp && setpriv --reuid ada --regid ada --init-groups sbatch {gpus(24)} --wrap true")
    assert "Job violates accounting/QOS policy" in refused.stderr


def test_all_classes_of_a_team_together_stay_within_its_quota(cluster: SimulatedSlurmCluster) -> None:
    first = submit(cluster, "bob", f"--qos product_training {gpus(8)}")
    second = submit(cluster, "bob", f"--qos product_inference {gpus(8)}")
    cluster.until(lambda: {state(cluster, first), state(cluster, second)} == {"RUNNING"}, "two run")
    third = submit(cluster, "bob", f"--qos product_inference {gpus(8)}")
    cluster.until(lambda: job(cluster, third)["Reason"] == "AssocGrpGRES", "the third waits for the quota")


def test_guaranteed_work_takes_back_what_was_lent(cluster: SimulatedSlurmCluster) -> None:
    own = submit(cluster, "ada", gpus(16))
    borrowed = submit(cluster, "ada", f"-A research_borrow {gpus(16)}", "echo begun; sleep 100")
    cluster.until(lambda: state(cluster, own) == "RUNNING", "ada has two nodes")
    cluster.until(lambda: log(cluster, borrowed) == "begun\n", "ada has all four nodes")
    guaranteed = submit(cluster, "bob", gpus(16))
    cluster.until(lambda: state(cluster, guaranteed) == "RUNNING", "bob has his quota")
    assert state(cluster, own) == "RUNNING"
    assert state(cluster, borrowed) == "PENDING"
    assert job(cluster, borrowed)["Restarts"] == "1"
    # A job that is queued again waits for two minutes, so that its old nodes forget it; some seconds do.
    cluster.says(f"scancel {guaranteed}; scontrol update JobId={borrowed} StartTime=now+3")
    cluster.until(lambda: state(cluster, borrowed) == "RUNNING", "what was sent back runs again")
    # JobFileAppend: what it had written before is still there.
    cluster.until(lambda: log(cluster, borrowed).count("begun") == 2, "its log continues")


def test_borrowed_work_never_takes_anything(cluster: SimulatedSlurmCluster) -> None:
    guaranteed = [submit(cluster, "bob", gpus(16)), submit(cluster, "ada", gpus(16))]
    cluster.until(lambda: {state(cluster, one) for one in guaranteed} == {"RUNNING"}, "both quotas are used")
    borrowed = submit(cluster, "ada", f"-A research_borrow {gpus(8)}")
    cluster.until(lambda: job(cluster, borrowed)["Reason"] in ("Resources", "Priority"), "it waits")
    assert {state(cluster, one) for one in guaranteed} == {"RUNNING"}


def test_borrowing_has_its_limit(cluster: SimulatedSlurmCluster) -> None:
    refused = cluster.shell(
        f"cd /tmp && setpriv --reuid ada --regid ada --init-groups sbatch -A research_borrow {gpus(24)} --wrap true"
    )
    assert "Job violates accounting/QOS policy" in refused.stderr


def test_priority_class_goes_before_fair_share_and_age(cluster: SimulatedSlurmCluster) -> None:
    cluster.says(f"scontrol update NodeName={','.join(NODES)} State=DRAIN Reason=test")
    lent = submit(cluster, "ada", f"-A research_borrow {gpus(8)}")
    training = submit(cluster, "ada", f"--qos research_training {gpus(8)}")
    inference = submit(cluster, "bob", f"--qos product_inference {gpus(8)}")
    cluster.until(lambda: len(cluster.says("squeue -h -o %i").split()) == 3, "three wait")
    order = [int(job(cluster, one)["Priority"]) for one in (inference, training, lent)]
    assert order == sorted(order, reverse=True)
    assert order[0] - order[1] > 30 * 4_900


def test_the_quota_is_first_for_the_higher_class_of_a_team(cluster: SimulatedSlurmCluster) -> None:
    running = submit(cluster, "ada", f"--qos research_training {gpus(16)}")
    cluster.until(lambda: state(cluster, running) == "RUNNING", "training runs")
    training = submit(cluster, "ada", f"--qos research_training {gpus(16)}")
    inference = submit(cluster, "ada", f"--qos research_inference {gpus(16)}")
    cluster.until(lambda: job(cluster, inference)["Reason"] == "AssocGrpGRES", "it waits for the quota")
    assert state(cluster, running) == "RUNNING"
    cluster.says(f"scancel {running}")
    cluster.until(lambda: state(cluster, inference) == "RUNNING", "inference runs")
    assert state(cluster, training) == "PENDING"


def test_a_class_preempts_a_lower_one_of_its_team_where_nodes_are_short(cluster: SimulatedSlurmCluster) -> None:
    cluster.says(f"scontrol update NodeName={NODES[2]},{NODES[3]} State=DRAIN Reason=test")
    training = submit(cluster, "ada", f"--qos research_training {gpus(8)}")
    other = submit(cluster, "bob", gpus(8))
    cluster.until(lambda: {state(cluster, training), state(cluster, other)} == {"RUNNING"}, "both nodes are used")
    inference = submit(cluster, "ada", f"--qos research_inference {gpus(8)}")
    cluster.until(lambda: state(cluster, inference) == "RUNNING", "inference has taken its place")
    assert (state(cluster, training), state(cluster, other)) == ("PENDING", "RUNNING")


def test_a_node_that_fails_its_check_is_drained_and_the_job_goes_elsewhere(cluster: SimulatedSlurmCluster) -> None:
    broken = NODES[0]
    cluster.says(f"touch /run/broken-{broken}")
    one = submit(cluster, "ada", f"--nodelist={broken} {gpus(8)}")
    cluster.until(lambda: "DRAIN" in cluster.says(f"sinfo -h -N -n {broken} -o %T").upper(), "it is drained")
    assert cluster.says(f"sinfo -h -N -n {broken} -o %E").splitlines()[0] == "podwright: 7 of 8 GPUs"
    cluster.until(lambda: state(cluster, one) == "PENDING", "the job is queued again")
    assert job(cluster, one)["Priority"] != "0", "not held"
    cluster.says(f"scontrol update JobId={one} ReqNodeList= StartTime=now+3")
    cluster.until(lambda: state(cluster, one) == "RUNNING", "it runs elsewhere")
    assert job(cluster, one)["NodeList"] != broken


def test_a_job_whose_node_fails_goes_on_elsewhere(cluster: SimulatedSlurmCluster) -> None:
    one = submit(cluster, "ada", gpus(8), "echo begun; sleep 100")
    cluster.until(lambda: log(cluster, one) == "begun\n", "it runs")
    first = job(cluster, one)["NodeList"]
    cluster.says(f"scontrol update NodeName={first} State=DRAIN Reason=Action:Replace")
    cluster.says(f"scontrol update NodeName={first} State=DOWN Reason=Action:Replace")
    cluster.until(lambda: state(cluster, one) == "PENDING", "it is queued again")
    cluster.says(f"scontrol update JobId={one} StartTime=now+3")
    cluster.until(lambda: state(cluster, one) == "RUNNING", "it runs elsewhere")
    assert job(cluster, one)["NodeList"] != first
    cluster.until(lambda: log(cluster, one).count("begun") == 2, "its log continues")


def in_slurm(cluster: SimulatedSlurmCluster, action: str) -> str:
    """Do that to the first node as its benchmarks do; gives its state and reason."""
    names = "from pathlib import Path; from podwright_node.slurm import node_state as state"
    names += "; from podwright_node.runner.node import Node; from podwright_node.runner.log import Log"
    node = f"Node(Path('/'), {{}}, 'h200', None, Log(Path('/tmp/log')), address='{COMPUTE[0]}')"
    cluster.says(f'cd /bundle && python3 -B -W ignore -c "{names}; state.{action}({node})"')
    # The star only says that a node which was down has not been heard of again yet.
    return cluster.says(f"sinfo -h -N -n {NODES[0]} -o '%T %E'").splitlines()[0].replace("*", "", 1)


def test_a_node_gets_no_job_while_it_is_measured(cluster: SimulatedSlurmCluster) -> None:
    assert in_slurm(cluster, "close") == "drained podwright measures this node"
    one = submit(cluster, "ada", f"--nodelist={NODES[0]} {gpus(8)}")
    cluster.until(lambda: "ReqNodeNotAvail" in job(cluster, one)["Reason"], "the job waits for the node")
    assert in_slurm(cluster, "reopen").startswith(("idle", "allocated", "mixed"))
    cluster.until(lambda: state(cluster, one) == "RUNNING", "it runs")


def test_a_node_that_is_closed_for_another_reason_stays_so(cluster: SimulatedSlurmCluster) -> None:
    cluster.says(f"scontrol update NodeName={NODES[0]} State=DRAIN Reason='broken fan'")
    assert in_slurm(cluster, "close") == in_slurm(cluster, "reopen") == "drained broken fan"


def test_a_node_is_marked_in_the_words_that_hyperpod_knows(cluster: SimulatedSlurmCluster) -> None:
    assert re.fullmatch(r"fail\*? Action:Replace", in_slurm(cluster, "replace"))


def test_slurm_conf_written_anew_gets_our_part_back(cluster: SimulatedSlurmCluster) -> None:
    slurmd = cluster.says("pgrep -x slurmd")
    cluster.write_configuration()
    cluster.says("scontrol reconfigure")
    assert "PreemptType=preempt/none" in re.sub(r" +", "", cluster.says("scontrol show config"))
    cluster.says("cd /opt/podwright/refresh && python3 -B -m podwright_node.slurm.refresh")
    assert cluster.says("tail -n 1 /opt/slurm/etc/slurm.conf").strip() == "include podwright.conf"
    assert "PreemptType=preempt/qos" in re.sub(r" +", "", cluster.says("scontrol show config"))
    assert cluster.says("pgrep -x slurmd") == slurmd
    assert "restart slurmd" not in cluster.says("tail -n 3 /run/systemctl.log")
    assert "ConditionPathExists=!/opt/slurm/etc/slurm.conf" in cluster.says(
        "cat /etc/systemd/system/slurmd.service.d/50-podwright-controller.conf"
    )


def test_nodes_without_a_configuration_of_their_own_have_our_part(cluster: SimulatedSlurmCluster) -> None:
    for node in NODES:
        assert cluster.says(f"cat /var/spool/slurmd/{node}/conf-cache/podwright.conf") == cluster.says(
            "cat /opt/slurm/etc/podwright.conf"
        )


def test_network_layers_become_slurms_topology(cluster: SimulatedSlurmCluster) -> None:
    layers = {f"10.16.5.{n}": ("nn-top", f"nn-mid{n // 13}", f"nn-leaf{n}") for n in (11, 12, 13, 14)}
    outcomes = cluster.steps("controller", layers)
    assert (outcomes["slurm-topology"], outcomes["slurm-configuration"]) == ("changed", "changed"), outcomes["log"]
    shown = cluster.says("scontrol show topology")
    assert re.search(r"SwitchName=nn-mid0 Level=1 LinkSpeed=1 Nodes=ip-10-16-5-\[11-12\]", shown)
    assert re.search(r"SwitchName=nn-top Level=2", shown)
    cluster.until(lambda: cluster.says("sinfo -h -p h200 -t idle -o %D").strip() == "4", "four nodes are idle")
    near = submit(cluster, "ada", f"--switches=2 {gpus(16)}")
    cluster.until(lambda: state(cluster, near) == "RUNNING", "it runs")
    assert job(cluster, near)["NodeList"] in ("ip-10-16-5-[11-12]", "ip-10-16-5-[13-14]")


def test_the_state_lies_where_controllers_share_it(cluster: SimulatedSlurmCluster) -> None:
    written = "ls /srv/shared/podwright-slurm/test"
    # slurmctld writes it some seconds after jobs have changed.
    cluster.until(lambda: "job_state" in cluster.says(written).split(), "the state of jobs is written")


def test_a_topic_hears_who_is_in_charge(cluster: SimulatedSlurmCluster) -> None:
    """slurmctld, as its own user, has run our program when it started."""
    output = cluster.says("cat /tmp/published")
    assert "slurm sns publish --region us-west-2 --topic-arn arn:aws:sns:us-west-2:111122223333:failover" in output
    assert f"--subject test: {cluster.says('uname -n').strip()} is the Slurm controller in charge" in output


def test_passwords_are_not_for_everyone(cluster: SimulatedSlurmCluster) -> None:
    assert cluster.says("stat -c '%U %a' /opt/slurm/etc/slurmdbd.conf").strip() == "slurm 600"
    password = re.search(r"StoragePass=(\S+)", cluster.says("cat /opt/slurm/etc/slurmdbd.conf"))
    assert password is not None
    assert password[1] not in cluster.says("cat /var/log/provision/*.jsonl")


def test_a_rendered_batch_job_runs_on_its_nodes(cluster: SimulatedSlurmCluster) -> None:
    """The script of a job of the file, taken by Debian's sbatch in the account and QOS that our steps made."""
    environment = environment_from(parse_source(FILE, "test.yaml"), "test").environment
    cluster.put("/tmp/job.sh", batch_script(environment, "llama", environment_types({})), mode=0o644)
    cluster.put("/usr/local/bin/srun", SRUN, mode=0o755)
    script = 'echo "$SLURM_NODEID: $* ($NOTE)"; sleep 5'
    cluster.put("/usr/local/bin/torchrun", f"#!/bin/bash\n{script}\n", mode=0o755)
    number = cluster.says("cd /tmp && setpriv --reuid ada --regid ada --init-groups sbatch --parsable job.sh").strip()
    cluster.until(lambda: job(cluster, number)["JobState"] == "RUNNING", "it runs")
    (row,) = rows_of(cluster.says(f"squeue --noheader --format='{FORMAT}'"))
    assert (row["name"], row["team"], row["state"], row["queue"]) == ("llama", "research", "running", "h200")
    assert row["accelerators"] == 16
    cluster.until(lambda: job(cluster, number)["JobState"] == "COMPLETED", "it ends")
    shown = job(cluster, number)
    assert (shown["Account"], shown["QOS"]) == ("research", "research_inference")
    lines = sorted(cluster.says(f"cat /tmp/log.{number}").splitlines())
    first = cluster.says(
        "scontrol show hostnames $(scontrol show job " + number + " | sed -n 's/^ *NodeList=//p')"
    ).split()[0]
    peers = f"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint={first}:29500 --nproc-per-node=8 train.py (a b)"
    assert lines == [f"0: {peers}", f"1: {peers}"]


# The last one: the teams and their members are others afterwards.
def test_a_team_that_changes_changes_in_slurm(cluster: SimulatedSlurmCluster) -> None:
    changed = SLURM | {
        "teams": [team("research", "bob", 8, None), team("vision", "ada", 0, 8)],
        "priorities": {"training": 70},
    }
    cluster.publish(node_facts(changed))
    outcomes = cluster.steps("controller", only="slurm-associations")
    assert outcomes["slurm-associations"] == "changed", outcomes["log"]
    rows = cluster.says("sacctmgr -nP show assoc format=Account,User,GrpTRES,DefaultQOS").split()
    assert sorted(row for row in rows if not row.startswith("root")) == [
        "research|bob||research_training",
        "research||cpu=8,gres/gpu=8|research_training",
        "vision_borrow|ada||vision_borrow",
        "vision_borrow|||vision_borrow",
    ]
    names = cluster.says("sacctmgr -nP show qos format=Name").split()
    assert sorted(names) == ["normal", "podwright_none", "research_training", "vision_borrow"]
