"""Slurm in an environment file: what is filled in, what nodes learn, and what HyperPod reads beside the scripts."""

import json
from typing import Any

import pytest

from podwright.config.catalog.instance_types import catalog
from podwright.config.errors import InvalidFile
from podwright.config.loading.load import environment_from
from podwright.config.loading.source import parse_source
from podwright.config.settings.environment import Environment
from podwright.planning.node.facts import LustreMount
from podwright.planning.node.provisioning_parameters import provisioning_parameters
from podwright.planning.node.slurm_facts import AccountingFacts, SlurmFacts, slurm_facts
from podwright.planning.rules import findings

BASE: dict[str, Any] = {
    "account": "111122223333",
    "region": "us-west-2",
    "network": {"zones": ["usw2-az2", "usw2-az3"]},
    "storage": {"lustre": {"zone": "usw2-az2", "efa": "true", "throughput": "500", "backups": {}}},
    "cluster": {"orchestrator": "slurm", "slurm": {"accounting": {}}},
    "instance_groups": {
        "controller": {"instance_type": "ml.m5.4xlarge", "count": "1"},
        "login": {"instance_type": "ml.m5.4xlarge", "count": "2"},
        "h200": {"instance_type": "ml.p5en.48xlarge", "count": "4"},
        "cpu": {"instance_type": "ml.c5.18xlarge", "count": "2", "slurm": {"partition": "prepare"}},
    },
}
DATABASE = AccountingFacts(
    host="db.example.com", port=3306, database="slurm_acct_db", secret_arn="arn:aws:secretsmanager:eu-west-1:1:secret:x"
)


def environment(**sections: Any) -> Environment:
    return environment_from(parse_source(json.dumps(BASE | sections), "test.yaml"), "test").environment


def facts(actual: Environment, accounting: AccountingFacts | None = None) -> SlurmFacts:
    return slurm_facts(
        settings=actual.cluster.slurm,
        groups=actual.instance_groups,
        governance=actual.governance,
        users=actual.users,
        user_groups=actual.user_groups,
        accounting=accounting,
        types=catalog(actual.instance_types),
    )


def teams(**settings: Any) -> Environment:
    return environment(governance={"teams": {"research": settings}})


def test_groups_get_their_part_by_name() -> None:
    made = environment()
    assert findings(made) == []
    parts = {name: group.slurm for name, group in made.instance_groups.items()}
    assert {name: part and (part.node_type, part.partition) for name, part in parts.items()} == {
        "controller": ("controller", None),
        "login": ("login", None),
        "h200": ("compute", "h200"),
        "cpu": ("compute", "prepare"),
    }
    assert made.cluster.system_group == "controller"
    assert "eks" not in made.cluster.model_fields_set


def test_a_name_of_ones_own_for_the_controllers() -> None:
    groups = BASE["instance_groups"] | {
        "controller": {"instance_type": "ml.c5.18xlarge", "count": "1"},
        "head": {"instance_type": "ml.m5.4xlarge", "count": "1", "slurm": {"node_type": "controller"}},
    }
    groups["controller"] = groups["controller"] | {"slurm": {"node_type": "compute"}}
    made = environment(instance_groups=groups)
    assert facts(made).controller_group == made.cluster.system_group == "head"
    assert facts(made).partitions["controller"] == ("controller",)


def test_groups_stay_without_a_part_on_eks() -> None:
    plain = {"controller": BASE["instance_groups"]["controller"], "h200": BASE["instance_groups"]["h200"]}
    made = environment(cluster={}, instance_groups=plain)
    assert [group.slurm for group in made.instance_groups.values()] == [None, None]
    assert made.cluster.eks.deletion_protection


def test_several_controllers_share_the_mount_of_the_file_system() -> None:
    assert environment().cluster.slurm.shared_directory is None
    two = BASE["instance_groups"] | {"controller": {"instance_type": "ml.m5.4xlarge", "count": "2"}}
    assert environment(instance_groups=two).cluster.slurm.shared_directory == "/fsx"
    elsewhere = {"lustre": BASE["storage"]["lustre"] | {"mount": "/scratch"}}
    assert environment(instance_groups=two, storage=elsewhere).cluster.slurm.shared_directory == "/scratch"
    assert environment(instance_groups=two, storage={}).cluster.slurm.shared_directory is None


def test_nodes_learn_partitions_and_login_groups() -> None:
    groups = BASE["instance_groups"] | {
        "more": {"instance_type": "ml.p5en.48xlarge", "count": "1", "slurm": {"partition": "h200"}}
    }
    learnt = facts(environment(instance_groups=groups), DATABASE)
    assert learnt.partitions == {"h200": ("h200", "more"), "prepare": ("cpu",)}
    assert learnt.login_groups == ("login",)
    assert learnt.accounting == DATABASE
    assert (learnt.configuration, learnt.strategy, learnt.shared_directory) == ("api", "merge", None)


def test_people_come_in_the_order_of_their_names_whatever_the_file_says() -> None:
    people = {"cy": {"uid": "2003"}, "ann": {"uid": "2001", "groups": ["vision", "docker"]}}
    made = environment(users=people, user_groups={"vision": "3002", "audio": "3001"})
    assert findings(made) == []
    learnt = facts(made)
    assert [(user.name, user.uid, user.gid, user.groups) for user in learnt.users] == [
        ("ann", 2001, 2001, ("docker", "vision")),
        ("cy", 2003, 2003, ()),
    ]
    assert [(group.name, group.gid) for group in learnt.groups] == [("audio", 3001), ("vision", 3002)]
    again = environment(users=dict(reversed(people.items())), user_groups={"audio": "3001", "vision": "3002"})
    assert facts(again) == learnt


def test_a_quota_of_instances_is_one_of_gpus_and_cpus() -> None:
    (team,) = facts(teams(quota={"h200": "3", "cpu": "1"})).teams
    assert team.quota == {"cpu": 3 * 192 + 72, "gres/gpu": 24}
    assert team.borrow == {"cpu": 324, "gres/gpu": 12}


def test_a_quota_counts_the_threads_that_slurm_sees_and_the_smallest_type() -> None:
    groups = BASE["instance_groups"] | {
        "cpu": {"instance_types": ["ml.c5.18xlarge", "ml.c5.4xlarge"], "count": "2", "threads_per_core": "1"},
        "trn": {"instance_type": "ml.trn2.48xlarge", "count": "1"},
    }
    actual = {"teams": {"research": {"quota": {"cpu": "2", "trn": "1"}}}}
    made = environment(instance_groups=groups, governance=actual)
    (team,) = facts(made).teams
    assert team.quota == {"cpu": 2 * 8 + catalog().get("ml.trn2.48xlarge").vcpu}


@pytest.mark.parametrize(
    ("settings", "borrow"),
    [
        ({"quota": {"h200": "1"}, "borrow_limit_percent": "100"}, {"cpu": 192, "gres/gpu": 8}),
        ({"quota": {"h200": "1"}, "share": "lend"}, None),
        ({"quota": {"h200": "1"}, "share": "dont_lend"}, None),
        ({}, {}),
    ],
)
def test_what_a_team_may_borrow(settings: dict[str, Any], borrow: dict[str, int] | None) -> None:
    (team,) = facts(teams(**settings)).teams
    assert team.borrow == borrow


def test_without_fair_share_all_teams_are_alike() -> None:
    made = environment(governance={"fair_share": "false", "teams": {"a": {"weight": "60"}, "b": {"weight": "0"}}})
    assert {team.name: team.weight for team in facts(made).teams} == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    "key",
    ['command="/bin/sh" ssh-ed25519 AAAA', "ssh-dss AAAA ann", "ssh-ed25519 AAAA ann\nssh-ed25519 BBBB eve", "AAAA"],
)
def test_a_key_is_one_line_without_options(key: str) -> None:
    with pytest.raises(InvalidFile) as refused:
        environment(users={"ann": {"uid": "2001", "ssh_keys": [key]}})
    assert [finding.path for finding in refused.value.findings] == ["users.ann.ssh_keys[0]"]


@pytest.mark.parametrize("uid", ["0", "1000", "4294967294"])
def test_ids_of_the_system_are_refused(uid: str) -> None:
    with pytest.raises(InvalidFile, match=r"users\.ann\.uid"):
        environment(users={"ann": {"uid": uid}})


LUSTRE = LustreMount(dns_name="fs-1.example.com", mount_name="abcdefgh", path="/fsx", zone="usw2-az2", efa=False)


def test_the_older_file_names_every_group() -> None:
    made = environment()
    written = provisioning_parameters(
        settings=made.cluster.slurm, groups=made.instance_groups, lustre=LUSTRE, accounting=DATABASE
    )
    assert written == {
        "version": "1.0.0",
        "workload_manager": "slurm",
        "controller_group": "controller",
        "login_group": "login",
        "worker_groups": [
            {"instance_group_name": "cpu", "partition_name": "prepare"},
            {"instance_group_name": "h200", "partition_name": "h200"},
        ],
        "fsx_dns_name": "fs-1.example.com",
        "fsx_mountname": "abcdefgh",
    }


def test_the_older_file_says_what_several_controllers_share() -> None:
    slurm = {
        "configuration": "provisioning_parameters",
        "accounting": {},
        "failover_topic": "arn:aws:sns:us-west-2:111122223333:failover",
    }
    two = BASE["instance_groups"] | {"controller": {"instance_type": "ml.m5.4xlarge", "count": "2"}}
    del two["login"]
    cluster = {"orchestrator": "slurm", "provisioning": "all_or_nothing", "slurm": slurm}
    made = environment(cluster=cluster, instance_groups=two)
    assert findings(made) == []
    written = provisioning_parameters(
        settings=made.cluster.slurm,
        groups=made.instance_groups,
        lustre=None,
        accounting=DATABASE,
        database_user="slurm",
    )
    assert "login_group" not in written
    assert "fsx_dns_name" not in written
    assert written["slurm_configurations"] == {
        "slurm_database_endpoint": "db.example.com",
        "slurm_database_secret_arn": DATABASE.secret_arn,
        "slurm_database_user": "slurm",
        "slurm_shared_directory": "/fsx",
        "slurm_sns_arn": "arn:aws:sns:us-west-2:111122223333:failover",
    }


@pytest.mark.parametrize("damage", ["{orchestrator: slurm}", "{orchestrator: slurm, slurm: [1]}", "[slurm]"])
@pytest.mark.parametrize("groups", ["null", "[]", "{controller: null}", "{controller: {slurm: []}}", "3"])
def test_odd_files_are_refused_and_never_crash(damage: str, groups: str) -> None:
    text = f"account: '1'\nregion: x\nnetwork: {{zones: [a]}}\ncluster: {damage}\ninstance_groups: {groups}\n"
    with pytest.raises(InvalidFile):
        environment_from(parse_source(text, "odd.yaml"), "odd")
