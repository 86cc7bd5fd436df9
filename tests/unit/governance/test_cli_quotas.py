import json
from pathlib import Path

import pytest

from podwright.operations import cli

ROOT = Path(__file__).parents[3]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(["quotas", *arguments, "--project", str(ROOT)]) == 0
    return capsys.readouterr().out


def test_what_teams_have_and_may_borrow(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split() for line in printed(capsys, "governed-hundred").splitlines()]
    assert ["foundation", "ml.p4d.24xlarge", "vCPU", "480", "480", "240", "720"] in rows
    # The limit in the file is 16 GPUs, and two nodes of p4d have 192 vCPUs.
    assert ["internal-tools", "ml.g5.48xlarge", "vCPU", "288", "288", "144", "432"] in rows
    assert ["ml.p4d.24xlarge", "vCPU", "0", "0", "192", "192"] in rows
    assert ["(no", "quota)", "ml.p4d.24xlarge", "GPU", "16"] in rows
    # 40 of the 120 GPUs are a third of 2,880 vCPUs, which the file leaves out.
    assert ["search", "ml.g5.48xlarge", "vCPU", "960*", "960", "0", "960"] in rows
    assert ["fraud", "dont_lend", "10", "its", "own", "lower", "priorities"] in rows


def test_what_aws_does_not_publish_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "As we read it: a limit of borrowing" in printed(capsys, "prod")
    assert "As we read it" not in printed(capsys, "three-projects")


def test_an_engine_without_weights_is_said_to_have_none(capsys: pytest.CaptureFixture[str]) -> None:
    output = printed(capsys, "shared-platform")
    assert "what is idle goes to the team that uses the least of its guarantee" in output
    assert ["pretraining", "models", "lend_and_borrow", "10", "nothing", "of", "its", "own"] in [
        line.split() for line in output.splitlines()
    ]
    assert "YuniKorn lends all idle resources" in output
    assert "counts neither EFA interfaces nor Neuron devices" in printed(capsys, "three-projects")


def test_quotas_of_slurm_are_what_slurm_counts(capsys: pytest.CaptureFixture[str]) -> None:
    actual = json.loads(printed(capsys, "slurm-classic", "--json"))
    assert actual["engine"] is None
    assert {quota["resource"] for team in actual["teams"] for quota in team["quotas"]} == {"cpu", "nvidia.com/gpu"}


def test_slurm_counts_what_no_quota_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "slurm.yaml"
    file.write_text((ROOT / "environments/slurm-classic.yaml").read_text().replace("{h200: 3}", "{h200: 2}"))
    actual = json.loads(printed(capsys, str(file), "--json"))
    assert {row["resource"]: row["amount"] for row in actual["unallocated"]} == {"cpu": 192, "nvidia.com/gpu": 8}


def test_quotas_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    actual = json.loads(printed(capsys, "three-projects", "--json"))
    c = next(team for team in actual["teams"] if team["team"] == "project-c")
    assert c["quotas"][2] == {
        "flavor": "h100",
        "resource": "nvidia.com/gpu",
        "unit": "GPU",
        "guaranteed": 0,
        "lends": 0,
        "borrows": None,
        "at_most": 32,
        "filled": False,
    }


def test_without_a_cluster_the_shares_of_queues_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    output = printed(capsys, "training-jobs-queue")
    (row,) = [line.split() for line in output.splitlines() if line.startswith("foundation") and " 10 " in line]
    # Twice its own, by borrow_limit_percent.
    assert row[:4] == ["foundation", "ml.p5.48xlarge", "10", "20"]
    result = json.loads(printed(capsys, "training-jobs-queue", "--json"))
    assert (result["notes"], result["teams"][0]["quotas"]) == ([], [])
    fraud = result["queues"][0]["shares"][1]
    assert (fraud["team"], fraud["strategy"], fraud["preempts"]) == ("fraud", "RESERVE", False)


def test_without_teams_there_is_nothing_to_share(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/one.yaml").write_text("""
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}
""")
    assert cli.main(["quotas", "one", "--project", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "one has no teams that share a cluster\n"


def test_a_file_with_errors_has_no_quotas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/one.yaml").write_text("""
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
cluster: {eks: {admins: ["arn:aws:iam::111122223333:role/MlPlatform"]}}
instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}
governance: {teams: {research: {quota: {h200: 2}}}}
""")
    assert cli.main(["quotas", "one", "--project", str(tmp_path)]) == 1
    assert "GOV001" in capsys.readouterr().err


def test_quotas_of_a_moment_are_those_in_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "prod.yaml"
    paper = "{begin: 2027-01-04, end: 2027-01-11, teams: {research: {quota: {h200: 4}}}}"
    text = (ROOT / "environments/prod.yaml").read_text()
    file.write_text(text.replace("\n  teams:\n", f"\n  overrides: {{paper: {paper}}}\n  teams:\n"))
    guaranteed = {}
    for day in ("", "2027-01-03", "2027-01-04", "2027-01-11"):
        assert cli.main(["quotas", str(file), "--json", *(["--date", day] if day else [])]) == 0
        result = json.loads(capsys.readouterr().out)
        (research,) = [team for team in result["teams"] if team["team"] == "research"]
        gpus = [each["guaranteed"] for each in research["quotas"] if each["resource"] == "nvidia.com/gpu"]
        guaranteed[day] = sum(gpus)
    assert guaranteed == {"": 80, "2027-01-03": 80, "2027-01-04": 32, "2027-01-11": 80}
    cli.main(["quotas", str(file)])
    assert (
        "From 2027-01-04T00:00Z to 2027-01-11T00:00Z research have others (override paper)" in capsys.readouterr().out
    )
