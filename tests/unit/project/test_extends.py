"""Environment files that take settings over from others."""

from pathlib import Path

import pytest

from podwright.config.errors import InvalidFile
from podwright.config.loading.load import LoadedEnvironment
from podwright.config.loading.project import Project
from podwright.operations import cli
from podwright.operations.capacity.plan_file import holder, write_plan
from podwright.planning.rules import findings

BASE = """\
account: "111122223333"
protection: destroy
network: {zones: [usw2-az1, usw2-az2]}
cluster:
  eks:
    version: "1.34"
    logs: [api, audit]
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  h100:
    instance_type: ml.p5.48xlarge
    count: 1
    zone: usw2-az1
tags: {cost-center: 0470}
"""
WEST = """\
extends: shared/base.yaml
region: us-west-2
instance_groups:
  h100: {count: 4}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "environments/shared").mkdir(parents=True)
    write(tmp_path, "shared/base", BASE)
    write(tmp_path, "west", WEST)
    return tmp_path


def write(project: Path, name: str, text: str) -> None:
    (project / f"environments/{name}.yaml").write_text(text)


def load(project: Path, name: str = "west") -> LoadedEnvironment:
    return Project.at(project).load(name)


def place(loaded: LoadedEnvironment, *path: str | int) -> str:
    return str(loaded.source.position(path))


def refused(project: Path, name: str = "west") -> tuple[str, str, str, str]:
    with pytest.raises(InvalidFile) as caught:
        load(project, name)
    (finding,) = caught.value.findings
    return finding.id, str(finding.place), finding.message, finding.hint


def test_mappings_are_joined_and_everything_else_replaced(project: Path) -> None:
    write(project, "west", f"{WEST}cluster: {{eks: {{logs: [scheduler]}}}}\n")
    environment = load(project).environment
    assert environment.name == "west"
    assert environment.instance_groups["h100"].count == 4
    assert environment.instance_groups["h100"].zone == "usw2-az1"
    assert (environment.cluster.eks.version, environment.cluster.eks.logs) == ("1.34", ("scheduler",))


def test_scalars_stay_as_written_across_files(project: Path) -> None:
    assert load(project).environment.tags == {"cost-center": "0470"}


def test_a_value_knows_the_file_in_which_it_stands(project: Path) -> None:
    loaded = load(project)
    assert place(loaded, "instance_groups", "h100", "count") == "environments/west.yaml:4"
    assert place(loaded, "instance_groups", "h100", "zone") == "environments/shared/base.yaml:13"
    assert place(loaded, "instance_groups", "system", "count") == "environments/shared/base.yaml:9"
    assert place(loaded, "observability") == "environments/west.yaml:1"


def test_findings_point_into_the_file_that_has_to_change(project: Path) -> None:
    write(project, "shared/base", BASE.replace("count: 2", "count: two"))
    (_, where, message, _) = refused(project)
    assert where == "environments/shared/base.yaml:9"
    assert "instance_groups.system.count is 'two'" in message
    write(project, "shared/base", BASE.replace("zone: usw2-az1", "zone: usw2-az3"))
    loaded = load(project)
    assert "environments/shared/base.yaml:13" in {
        str(item.place) for item in findings(loaded.environment, loaded.source)
    }


def test_null_takes_away_what_was_inherited(project: Path) -> None:
    write(project, "west", f"{WEST}  system2: ~\nprotection: ~\ntags:\n")
    (_, where, message, _) = refused(project)
    assert (where, "system2" in message) == ("environments/west.yaml:5", True)  # nothing there to take away
    write(project, "west", f"{WEST}protection: ~\ntags:\ncluster: {{eks: {{logs: null}}}}\n")
    loaded = load(project)
    assert (loaded.environment.protection, loaded.environment.tags) == ("retain", {})
    assert len(loaded.environment.cluster.eks.logs) == 5
    assert ("tags",) not in loaded.source.positions
    assert ("tags", "cost-center") not in loaded.source.positions


def test_later_files_lie_over_earlier_ones(project: Path) -> None:
    write(project, "shared/small", "instance_groups: {h100: {count: 2}, system: {count: 3}}\n")
    write(project, "west", WEST.replace("shared/base.yaml", "[shared/base.yaml, shared/small.yaml]"))
    groups = load(project).environment.instance_groups
    assert (groups["system"].count, groups["h100"].count) == (3, 4)
    write(project, "west", WEST.replace("shared/base.yaml", "[shared/small.yaml, shared/base.yaml]"))
    assert load(project).environment.instance_groups["system"].count == 2


def test_a_replaced_list_leaves_no_place_behind(project: Path) -> None:
    write(project, "west", f"{WEST}network: {{zones: usw2-az1}}\n")
    loaded = load(project)
    assert loaded.environment.network.zones == ("usw2-az1",)
    assert place(loaded, "network", "zones", 1) == "environments/west.yaml:5"


def test_paths_are_relative_to_the_file_that_names_them(project: Path) -> None:
    (project / "company.yaml").write_text("tags: {owner: ml}\n")
    write(project, "shared/base", f"extends: ../../company.yaml\n{BASE}")
    loaded = load(project)
    assert loaded.environment.tags == {"owner": "ml", "cost-center": "0470"}
    assert place(loaded, "tags", "owner") == "company.yaml:1"
    assert list(loaded.source.files) == ["company.yaml", "environments/shared/base.yaml", "environments/west.yaml"]


def test_shared_files_are_no_environments(project: Path) -> None:
    assert Project.at(project).names == ["west"]


def test_an_environment_may_extend_another_but_not_its_name(project: Path) -> None:
    write(project, "west", f"name: west\n{WEST}")
    write(project, "east", "extends: west.yaml\nregion: us-east-1\nnetwork: {zones: [use1-az1, use1-az2]}\n")
    assert load(project, "east").environment.name == "east"


@pytest.mark.parametrize(
    ("text", "output", "hint"),
    [
        (
            "extends: shared/bse.yaml",
            "names shared/bse.yaml, and there is no environments/shared/bse",
            "mean base.yaml",
        ),
        ("extends: /etc/base.yaml", "an absolute path", "relative to this file"),
        ("extends: {a: b}", "not a path", "a list of them"),
        ("extends: [shared/base.yaml, [x]]", "not a path", "a list of them"),
        ("extends: base", "is 'base'", "a list of them"),
        ("extends: ['']", "is ''", "a list of them"),
    ],
)
def test_what_cannot_be_extended(project: Path, text: str, output: str, hint: str) -> None:
    write(project, "west", WEST.replace("extends: shared/base.yaml", text))
    id, where, message, advice = refused(project)
    assert (id, where) == ("ENV008", "environments/west.yaml:1")
    assert output in message
    assert hint in advice


def test_a_shared_file_is_a_mapping(project: Path) -> None:
    write(project, "shared/base", "- a\n")
    assert refused(project)[:2] == ("ENV008", "environments/shared/base.yaml:1")
    write(project, "shared/base", "a: [\n")
    assert refused(project)[:2] == ("YML001", "environments/shared/base.yaml:2")


def test_a_circle_is_named(project: Path) -> None:
    write(project, "shared/base", f"{BASE}extends: ../other.yaml\n")
    write(project, "other", "extends: west.yaml\n")
    id, where, message, _ = refused(project)
    assert (id, where) == ("ENV009", "environments/other.yaml:1")
    assert message.endswith(
        "environments/west.yaml → environments/shared/base.yaml → environments/other.yaml → environments/west.yaml"
    )


def test_the_depth_and_the_number_of_files_have_an_end(project: Path) -> None:
    for number in range(12):
        write(project, f"shared/{number}", f"extends: {number + 1}.yaml\n")
    write(project, "west", WEST.replace("base", "0"))
    assert refused(project)[2] == "extends leads more than 8 files deep"
    for number in range(7):
        write(project, f"shared/{number}", f"extends: [{number + 1}.yaml, {number + 1}.yaml]\n")
    write(project, "shared/7", "{}\n")
    assert refused(project)[2] == "extends leads more than 64 files"


def test_a_misspelt_extends_is_recognized(project: Path) -> None:
    write(project, "west", "extend: shared/base.yaml\naccount: '111122223333'\n")
    with pytest.raises(InvalidFile) as caught:
        load(project)
    assert "did you mean 'extends'?" in {finding.hint for finding in caught.value.findings}


def test_a_plan_is_written_into_the_file_that_holds_it(project: Path) -> None:
    plan = "\ntraining_plans:\n  q1: {instance_type: ml.p5.48xlarge, count: 4, days: 28, zone: usw2-az1}  # agreed\n"
    write(project, "shared/base", BASE + plan)
    file = project / "environments/west.yaml"
    before = file.read_text()
    arn = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/q1"
    write_plan(file, "q1", {"arn": arn})
    assert file.read_text() == before
    shared = (project / "environments/shared/base.yaml").read_text()
    assert f"arn: {arn}" in shared
    assert shared.endswith("}  # agreed\n")
    assert load(project).environment.training_plans["q1"].arn == arn
    assert holder(Project.at(project).source("west"), file, ("training_plans", "q1")).name == "base.yaml"
    write(project, "west", f"{WEST}training_plans: {{q1: {{count: 2}}}}\n")
    write_plan(file, "q1", {"days": 14})
    assert "days: 14" in file.read_text()
    assert load(project).environment.training_plans["q1"].arn == arn


def test_show_says_where_each_value_comes_from(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show", "west", "--origins", "--project", str(project)]) == 0
    lines = {line.split("#")[0].strip(): line.partition("# ")[2] for line in capsys.readouterr().out.splitlines()}
    assert lines["count: 4"] == "environments/west.yaml:4"
    assert lines["zone: usw2-az1"] == "environments/shared/base.yaml:13"
    assert lines["version: '1.34'"] == "environments/shared/base.yaml:6"
    assert lines["endpoint: private"] == "default"
    assert cli.main(["show", "west", "--origins", "--json", "--project", str(project)]) == 0
    assert '"instance_groups.h100.count": "environments/west.yaml:4"' in capsys.readouterr().out


def test_two_files_of_one_path_are_both_known(tmp_path: Path) -> None:
    """Below a linked folder `..` leads out of the link, and a path without `..` leads elsewhere."""
    shared = tmp_path / "shared"
    (shared / "team").mkdir(parents=True)
    environments = tmp_path / "environments"
    environments.mkdir()
    (environments / "team").symlink_to(shared / "team")
    (environments / "base.yaml").write_text(f"region: us-west-2\n{BASE}")
    (shared / "base.yaml").write_text("tags: {owner: research}\n")
    (shared / "team/more.yaml").write_text("extends: ../base.yaml\n")
    (environments / "dev.yaml").write_text("extends: [base.yaml, team/more.yaml]\n")
    source = Project.at(tmp_path).load("dev").source
    files = {file.resolve() for file in source.files.values()}
    assert files == {
        *(environments / name for name in ("dev.yaml", "base.yaml")),
        *(shared / name for name in ("base.yaml", "team/more.yaml")),
    }
    assert source.file_of(("tags", "owner")) == environments / "team/../base.yaml"
