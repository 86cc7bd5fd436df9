"""What Slurm's steps write and refuse, without a Slurm: also what Debian's release cannot read."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from needs import needs, needs_programs
from podwright.lifecycle_scripts.podwright_node.runner.failure import Failure
from podwright.lifecycle_scripts.podwright_node.slurm import accounting as slurm_accounting
from podwright.lifecycle_scripts.podwright_node.slurm import associations as slurm_associations
from podwright.lifecycle_scripts.podwright_node.slurm import configuration as slurm_configuration
from podwright.lifecycle_scripts.podwright_node.slurm import containers as slurm_containers
from podwright.lifecycle_scripts.podwright_node.slurm import control as slurm_control
from podwright.lifecycle_scripts.podwright_node.slurm import daemons as slurm_daemons
from podwright.lifecycle_scripts.podwright_node.slurm import health as slurm_health
from podwright.lifecycle_scripts.podwright_node.slurm import refresh as slurm_refresh
from podwright.lifecycle_scripts.podwright_node.slurm import topology as slurm_topology
from podwright.lifecycle_scripts.podwright_node.slurm import users as slurm_users
from simulated_slurm import COMPUTE
from slurm_node import CONF, SLURM, SlurmNode


@pytest.fixture
def slurm_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmNode]:
    location = SlurmNode(tmp_path)
    monkeypatch.setenv("PATH", f"{location.bin}:{os.environ['PATH']}")
    with location.log:
        yield location


def team(**settings: Any) -> dict[str, Any]:
    return {
        "name": "research",
        "quota": {"gres/gpu": 16},
        "borrow": {"gres/gpu": 8},
        "weight": 50,
        "preempt": "lower_priority",
        "budget_minutes": None,
        "users": ["ada"],
        **settings,
    }


LABELLED = {"n11": ("top", "mid1", "leaf1"), "n12": ("top", "mid1", "leaf2"), "n13": ("top", "mid2", "leaf3")}


def test_topology_conf_names_every_node_once(slurm_node: SlurmNode) -> None:
    slurm_node.layers(**LABELLED)
    written = slurm_topology.file(slurm_node.node())
    assert written is not None
    assert written[0] == "/opt/slurm/etc/topology.conf"
    assert written[1].splitlines()[1:] == [
        "SwitchName=cluster Switches=elsewhere,top",
        "SwitchName=top Switches=mid1,mid2",
        "SwitchName=mid1 Switches=leaf1,leaf2",
        "SwitchName=leaf1 Nodes=ip-10-16-5-11",
        "SwitchName=leaf2 Nodes=ip-10-16-5-12",
        "SwitchName=mid2 Switches=leaf3",
        "SwitchName=leaf3 Nodes=ip-10-16-5-13",
        "SwitchName=elsewhere Nodes=ip-10-16-5-14",
    ]
    assert slurm_topology.plugin(slurm_node.node()) == {"TopologyPlugin": "topology/tree"}


def test_topology_yaml_of_slurm_25_has_the_names_that_partitions_ask_for(slurm_node: SlurmNode) -> None:
    """Debian's Slurm is older than this file: its form is checked, by topology.yaml(5), and not that Slurm takes it."""
    slurm_node.command("scontrol", 'echo "slurm 25.11.2"')
    slurm_node.put("/opt/slurm/etc/slurm.conf", CONF.replace("Nodes=ALL", "Nodes=ALL Topology=tree"))
    slurm_node.put("/opt/slurm/etc/topology.yaml", "[]\n")
    slurm_node.layers(**LABELLED)
    written = slurm_topology.file(slurm_node.node())
    assert written is not None
    assert written[0] == "/opt/slurm/etc/topology.yaml"
    (topology,) = YAML(typ="safe").load(written[1])
    assert (topology["topology"], topology["cluster_default"]) == ("tree", True)
    switches = {switch["switch"]: switch for switch in topology["tree"]["switches"]}
    assert switches["mid1"] == {"switch": "mid1", "children": "leaf1,leaf2"}
    assert switches["leaf3"] == {"switch": "leaf3", "nodes": "ip-10-16-5-13"}
    named = [name for switch in switches.values() for name in switch.get("nodes", "").split(",") if name]
    assert sorted(named) == [f"ip-{address.replace('.', '-')}" for address in COMPUTE]
    assert slurm_topology.plugin(slurm_node.node()) == {}


def test_an_empty_topology_that_slurm_conf_asks_for_is_filled(slurm_node: SlurmNode) -> None:
    slurm_node.put("/opt/slurm/etc/slurm.conf", CONF + "TopologyPlugin=topology/tree\n")
    slurm_node.put("/opt/slurm/etc/topology.conf", "# nothing yet\n")
    slurm_node.layers()
    written = slurm_topology.file(slurm_node.node())
    assert written is not None
    assert "SwitchName=elsewhere Nodes=ip-10-16-5-11,ip-10-16-5-12,ip-10-16-5-13,ip-10-16-5-14" in written[1]


def test_without_layers_slurm_keeps_its_flat_view(slurm_node: SlurmNode) -> None:
    slurm_node.layers()
    assert slurm_topology.file(slurm_node.node()) is None


def test_a_topology_of_hyperpods_own_stays(slurm_node: SlurmNode) -> None:
    slurm_node.put("/opt/slurm/etc/topology.conf", "SwitchName=s1 Nodes=ip-10-16-5-[11-14]\n")
    slurm_node.layers(**LABELLED)
    assert slurm_topology.file(slurm_node.node()) is None


def test_settings_come_from_included_files_and_never_from_ours(slurm_node: SlurmNode) -> None:
    slurm_node.put("/opt/slurm/etc/slurm.conf", CONF + "include podwright.conf\n")
    slurm_node.put("/opt/slurm/etc/podwright.conf", "JobRequeue=1\n")
    slurm_node.put("/opt/slurm/etc/accounting.conf", "AccountingStorageType=accounting_storage/slurmdbd\n")
    settings = slurm_control.settings(slurm_node.node())
    assert settings["accountingstoragetype"] == "accounting_storage/slurmdbd"
    assert "jobrequeue" not in settings
    assert "nodename" not in settings
    assert slurm_control.controllers(slurm_node.node()) == [("ip-10-16-5-9", "10.16.5.9")]


def test_what_the_image_sets_stays(slurm_node: SlurmNode) -> None:
    slurm_node.layers()
    rows = slurm_configuration.text(slurm_node.node()).splitlines()
    assert "SchedulerParameters=bf_window=60,nohold_on_prolog_fail" in rows
    assert "AccountingStorageHost=10.16.5.9" in rows
    assert "Prolog=/opt/slurm/etc/prolog.d/*" in rows
    assert not [row for row in rows if row.startswith("Preempt")]
    own = "AccountingStorageType=accounting_storage/slurmdbd\nProlog=/opt/image/prolog\nPrologFlags=Contain\n"
    slurm_node.put("/opt/slurm/etc/accounting.conf", own)
    rows = slurm_configuration.text(slurm_node.node()).splitlines()
    assert not [row for row in rows if row.startswith(("AccountingStorage", "Prolog="))]
    assert "PrologFlags=Contain,Alloc" in rows
    assert slurm_health.skipped(slurm_control.settings(slurm_node.node())) == ["Prolog=/opt/image/prolog"]


def test_the_include_is_the_last_line_and_stands_there_once(slurm_node: SlurmNode) -> None:
    slurm_node.put("/opt/slurm/etc/slurm.conf", "include podwright.conf\n" + CONF)
    slurm_node.layers()
    slurm_configuration.enforce(slurm_node.node())
    lines = (slurm_node.root / "opt/slurm/etc/slurm.conf").read_text().splitlines()
    assert lines == [*CONF.splitlines(), "include podwright.conf"]
    assert slurm_configuration.is_in_force(slurm_node.node())


def test_a_class_called_borrow_is_refused() -> None:
    with pytest.raises(Failure, match="a priority class is called borrow"):
        slurm_associations.wanted({**SLURM, "teams": [team()], "priorities": {"borrow": 1}})


def test_what_teams_become() -> None:
    teams = [team(), team(name="vision", quota={}, borrow={}), team(name="web", borrow=None, preempt="never")]
    qos, accounts = slurm_associations.wanted({**SLURM, "teams": teams, "priorities": {"low": 5, "high": 50}})
    borrowing = {"research_borrow", "vision_borrow"}
    assert {name: entry.preempts for name, entry in qos.items()} == {
        "research_borrow": set(),
        "vision_borrow": set(),
        "podwright_none": set(),
        "research_low": borrowing,
        "research_high": borrowing | {"research_low"},
        "web_low": borrowing,
        "web_high": borrowing,
    }
    assert (qos["research_low"].priority, qos["research_high"].priority, qos["vision_borrow"].priority) == (105, 150, 0)
    assert (qos["research_low"].limits, qos["research_low"].largest) == ("", "gres/gpu=16")
    assert (qos["research_borrow"].limits, qos["vision_borrow"].limits) == ("gres/gpu=8", "")
    assert {name: (account.limits, account.default) for name, account in accounts.items()} == {
        "research": ("gres/gpu=16", "research_low"),
        "research_borrow": ("", "research_borrow"),
        "vision_borrow": ("", "vision_borrow"),
        "web": ("gres/gpu=16", "web_low"),
    }


def test_a_guaranteed_qos_always_preempts_something() -> None:
    """Slurm 22.05 takes an emptied list for a loop."""
    qos, _ = slurm_associations.wanted({**SLURM, "teams": [team(borrow=None)]})
    assert qos["research_guaranteed"].preempts == {"podwright_none"}


USER = {"name": "ada", "uid": 2001, "gid": 2001, "groups": [], "ssh_keys": ["ssh-ed25519 A ada"]}


def test_an_id_that_somebody_else_has_is_refused(slurm_node: SlurmNode) -> None:
    slurm_node.put("/etc/passwd", "image:x:2001:2001::/home/image:/bin/bash\n")
    slurm_node.put("/etc/group", "ada:x:2001:\n")
    with pytest.raises(Failure, match="user ada the id 2001, and on this node id 2001 belongs to image"):
        slurm_users.make(slurm_node.node(users=[USER]))
    slurm_node.put("/etc/passwd", "ada:x:1005:1005::/home/ada:/bin/bash\n")
    with pytest.raises(Failure, match="ada has id 1005"):
        slurm_users.make(slurm_node.node(users=[USER]))


def test_a_group_that_the_image_lacks_is_named_and_the_others_are_joined(slurm_node: SlurmNode) -> None:
    slurm_node.put("/etc/passwd", "ada:x:2001:2001::/home/ada:/bin/bash\n")
    slurm_node.put("/etc/group", "ada:x:2001:\nml:x:3000:\n")
    slurm_node.put("/etc/shadow", "ada:!::::::\n")
    (slurm_node.root / "home/ada").mkdir(parents=True)
    node = slurm_node.node(users=[{**USER, "groups": ["docker", "ml"]}], groups=[{"name": "ml", "gid": 3000}])
    slurm_node.command("usermod", f"sed -i 's/^ml:.*/ml:x:3000:ada/' {slurm_node.root}/etc/group")
    slurm_users.make(node)
    assert next(line for line in slurm_node.asked if line.startswith("usermod")).endswith("--append --groups ml ada")
    assert slurm_users.are_there(node)
    assert "user ada belongs to docker, which this image does not have" in slurm_node.said


def test_keys_of_people_who_left_go(slurm_node: SlurmNode) -> None:
    slurm_node.put("/etc/ssh/podwright_keys/bob", "ssh-ed25519 B bob\n")
    slurm_users.make(slurm_node.node())
    assert not (slurm_node.root / "etc/ssh/podwright_keys/bob").exists()
    assert slurm_users.are_there(slurm_node.node())


def test_homes_are_on_shared_storage_where_there_is_any(slurm_node: SlurmNode) -> None:
    node = slurm_node.node()
    assert slurm_users.home_folder(node) == "/home"
    node.facts["file_systems"]["lustre"] = {"scratch": {"path": "/fsx"}}
    assert slurm_users.home_folder(node) == "/fsx/home"
    node.facts["file_systems"]["home"] = {"path": "/home"}
    assert slurm_users.home_folder(node) == "/home"


EXTERNAL = {"host": "db.example.com", "port": 3307, "database": "slurm_test", "secret_arn": "arn:aws:s:1"}


@needs(os.geteuid() == 0, "root, to hand slurmdbd.conf to Slurm's user")
def test_an_outside_database_is_reached_with_its_secret(slurm_node: SlurmNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_control, "database_answers", lambda host: host == "10.16.5.9")
    slurm_node.put("/etc/passwd", "slurm:x:401:402::/:/bin/false\n")
    slurm_node.command("aws", 'echo \'{"username": "admin", "password": "s3cret"}\'')
    node = slurm_node.node(accounting=EXTERNAL)
    slurm_accounting.set_up(node)
    conf = (slurm_node.root / "opt/slurm/etc/slurmdbd.conf").read_text().splitlines()
    for row in ("StorageHost=db.example.com", "StoragePort=3307", "StorageLoc=slurm_test", "StorageUser=admin"):
        assert row in conf
    written = (slurm_node.root / "opt/slurm/etc/slurmdbd.conf").stat()
    assert (written.st_uid, written.st_gid, written.st_mode & 0o777) == (401, 402, 0o600)
    assert "StoragePass=s3cret" in conf
    call = "aws secretsmanager get-secret-value --secret-id arn:aws:s:1 --region us-west-2"
    assert any(line.startswith(call) for line in slurm_node.asked)
    assert not [line for line in slurm_node.asked if "mariadb" in line]
    assert slurm_accounting.is_up(node)
    assert not slurm_accounting.is_up(slurm_node.node(accounting={**EXTERNAL, "host": "other.example.com"}))


@pytest.mark.parametrize(
    ("secret", "complaint"),
    [
        ("no json", "holds no JSON with username and password"),
        ('{"user": "admin"}', "holds no JSON with username and password"),
        ('{"username": "admin", "password": "a#b"}', "blank, a quote, a backslash or #"),
    ],
)
def test_a_secret_that_slurm_cannot_use_is_named(slurm_node: SlurmNode, secret: str, complaint: str) -> None:
    slurm_node.command("aws", f"echo '{secret}'")
    with pytest.raises(Failure, match=complaint):
        slurm_accounting.set_up(slurm_node.node(accounting=EXTERNAL))
    assert not (slurm_node.root / "opt/slurm/etc/slurmdbd.conf").exists()


def test_several_controllers_know_one_another(slurm_node: SlurmNode) -> None:
    slurm_node.put("/opt/slurm/etc/slurm.conf", CONF + "SlurmctldHost=ip-10-16-5-10(10.16.5.10)\n")
    conf = slurm_accounting.conf_text(slurm_node.node(accounting=EXTERNAL), "u", "p").splitlines()
    assert {"DbdHost=ip-10-16-5-9", "DbdAddr=10.16.5.9", "DbdBackupHost=ip-10-16-5-10"} <= set(conf)
    assert slurm_accounting.settings(slurm_node.node())["AccountingStorageBackupHost"] == "10.16.5.10"


def test_a_compute_node_asks_the_controllers_for_its_configuration(slurm_node: SlurmNode) -> None:
    slurm_node.layers()
    node = slurm_node.node("h200")
    assert slurm_daemons.client(node) == {
        slurm_daemons.CLIENT: '[Service]\nEnvironment="SLURMD_OPTIONS=--conf-server 10.16.5.9"\n'
    }
    assert slurm_daemons.run_already(slurm_node.node("h200", configuration="api"))
    assert not slurm_daemons.run_already(node)


def test_enroot_uses_the_large_disk(slurm_node: SlurmNode, monkeypatch: pytest.MonkeyPatch) -> None:
    original = "ENROOT_CACHE_PATH /tmp/enroot\nENROOT_MOUNT_HOME y\n"
    slurm_node.put("/etc/enroot/enroot.conf", original)
    node = slurm_node.node("h200")
    monkeypatch.setattr(slurm_containers, "is_mount_point", lambda _, path: path == "/opt/sagemaker")
    slurm_containers.point(node)
    text = (slurm_node.root / "etc/enroot/enroot.conf").read_text()
    assert text.index("ENROOT_CACHE_PATH /opt/sagemaker/enroot/cache/user-$(id -u)\n") < text.index("/tmp/enroot")
    assert (slurm_node.root / "opt/sagemaker/enroot/data").stat().st_mode & 0o7777 == 0o1777
    assert slurm_containers.is_set(node)
    slurm_containers.point(node)
    assert (slurm_node.root / "etc/enroot/enroot.conf").read_text() == text
    monkeypatch.setattr(slurm_containers, "is_mount_point", lambda _, path: False)
    slurm_containers.point(node)
    assert (slurm_node.root / "etc/enroot/enroot.conf").read_text() == original


@needs_programs("systemd-analyze", package="systemd")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for name, text in slurm_refresh.UNITS.items():
        (tmp_path / name).write_text(text)
    command = ["systemd-analyze", "verify", "--man=no", *slurm_refresh.UNITS]
    environment = os.environ | {"SYSTEMD_UNIT_PATH": f"{tmp_path}:"}
    assert subprocess.run(command, env=environment, capture_output=True, text=True).stderr == ""


def test_a_budget_is_an_account_above_those_of_its_team(slurm_node: SlurmNode) -> None:
    teams = [team(budget_minutes=240), team(name="web", borrow=None)]
    slurm = {**SLURM, "teams": teams, "budget_period": "month"}
    _, accounts = slurm_associations.wanted(slurm)
    assert {name: (account.parent, account.minutes) for name, account in accounts.items()} == {
        "research_budget": ("root", "gres/gpu=240"),
        "research": ("research_budget", ""),
        "research_borrow": ("research_budget", ""),
        "web": ("root", ""),
    }
    assert accounts["research_budget"].share == accounts["research"].share + accounts["research_borrow"].share
    rows = slurm_associations.settings(slurm_node.node(**slurm), {})
    assert rows["AccountingStorageEnforce"] == "associations,limits,qos,safe"
    assert (rows["PriorityDecayHalfLife"], rows["PriorityUsageResetPeriod"]) == ("00:00:00", "MONTHLY")
    assert rows["AccountingStorageTRES"] == "gres/gpu"
    without = slurm_associations.settings(slurm_node.node(teams=[team()]), {})
    assert without["AccountingStorageEnforce"] == "associations,limits,qos"
    assert not {"PriorityDecayHalfLife", "PriorityUsageResetPeriod"} & without.keys()


def test_a_budget_that_comes_or_goes_moves_the_accounts_of_its_team() -> None:
    _, plain = slurm_associations.wanted({**SLURM, "teams": [team()]})
    _, held = slurm_associations.wanted({**SLURM, "teams": [team(budget_minutes=240)], "budget_period": "month"})
    first, *others = slurm_associations._account_changes(plain, held)
    assert first[:3] == ("add", "account", "research_budget")
    assert "GrpTRESMins=gres/gpu=240" in first
    assert [(words[2], "Parent=research_budget" in words) for words in others] == [
        ("research", True),
        ("research_borrow", True),
    ]
    back = list(slurm_associations._account_changes(held, plain))
    assert [(words[2], "Parent=root" in words) for words in back] == [("research", True), ("research_borrow", True)]
