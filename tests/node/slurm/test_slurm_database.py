"""Slurm's accounts in a database outside the controller, which knows a user of a secret and nothing of Slurm."""

import json
from typing import Any

from needs import needs
from podwright.sandbox.slurm.machine import missing
from simulated_slurm import node_facts, simulated_slurm_cluster

pytestmark = needs(missing() is None, str(missing()))

SLURM: dict[str, Any] = {
    "configuration": "provisioning_parameters",
    "strategy": "merge",
    "controller_group": "controller",
    "login_groups": [],
    "partitions": {"h200": ["h200"]},
    "accounting": {"host": "10.16.5.9", "port": 3306, "database": "slurm_test", "secret_arn": "arn:aws:s:1"},
    "shared_directory": None,
    "failover_topic": None,
    "groups": [],
    "users": [],
    "teams": [],
    "priorities": {},
    "fair_share": True,
    "budget_period": None,
}


def test_accounts_in_a_database_elsewhere() -> None:
    with simulated_slurm_cluster() as simulated:
        secret = json.dumps({"username": "admin", "password": "s3cret"})
        simulated.put(
            "/usr/local/bin/aws",
            f"#!/bin/bash\n[[ \"$*\" == *--secret-id\\ arn:aws:s:1* ]] && echo '{secret}'\n",
            0o755,
        )
        simulated.put("/etc/mysql/mariadb.conf.d/90-elsewhere.cnf", "[mariadb]\nbind-address=10.16.5.9\n")
        simulated.says("systemctl start mariadb")
        simulated.until(lambda: simulated.shell("mariadb --execute 'SELECT 1'").returncode == 0, "the database answers")
        grant = "CREATE USER 'admin'@'%' IDENTIFIED BY 's3cret'; GRANT ALL ON *.* TO 'admin'@'%'"
        simulated.says(f'mariadb --execute "{grant}"')
        simulated.publish(node_facts(SLURM))
        outcomes = simulated.steps("controller")
        assert outcomes["slurm-accounting"] == outcomes["slurm-daemons"] == "changed", outcomes["log"]
        assert "cluster_table" in simulated.says("mariadb --batch --execute 'SHOW TABLES IN slurm_test'").split()
        assert simulated.says("sacctmgr --noheader --parsable2 show cluster format=Cluster").strip() == "test"
        assert "60-podwright-slurm.cnf" not in simulated.says("ls /etc/mysql/mariadb.conf.d")
        assert "s3cret" not in simulated.says("cat /var/log/provision/*.jsonl /opt/slurm/etc/slurm.conf")
        # Without teams nobody is kept from anything.
        assert "Preempt" not in simulated.says("cat /opt/slurm/etc/podwright.conf")
        again = simulated.steps("controller")
        again.pop("log")
        assert set(again.values()) <= {"unchanged", "not-needed"}, again
