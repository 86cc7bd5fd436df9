import json
import subprocess
import sys
from pathlib import Path

import pytest

from podwright.config.findings import errors
from podwright.config.loading.project import Project
from podwright.operations import cli
from podwright.operations.environments.new_project import scenarios
from podwright.planning.rules import findings


def init(folder: Path, *arguments: str) -> int:
    return cli.main(["init", str(folder), *arguments])


def files(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


def test_starts_a_project_for_the_sandbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "cluster"
    assert init(folder) == 0
    assert set(files(folder)) == {
        "environments/sandbox.yaml",
        "environments/environment.schema.json",
        "cdk.json",
        "requirements.txt",
        ".gitignore",
        ".podwright/python",
    }
    loaded = Project.at(folder).load("sandbox")
    assert loaded.environment.account == "123456789012"
    assert loaded.environment.protection == "destroy"
    assert not errors(findings(loaded.environment, loaded.source))
    assert f"Next: cd {folder} && podwright deploy" in capsys.readouterr().out


def test_starts_a_project_for_aws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(tmp_path, "--account", "111122223333", "--region", "eu-central-1") == 0
    steps = capsys.readouterr().out.partition(f"Next, in {tmp_path}:\n")[2].splitlines()
    assert max(map(len, steps)) <= 80
    assert [line.partition("#")[0].strip() for line in steps] == [
        "podwright deploy prod --sandbox",
        "podwright chart fetch",
        "podwright preflight prod",
        "podwright deploy prod --bootstrap",
    ]
    loaded = Project.at(tmp_path).load("prod").environment
    assert (loaded.account, loaded.region, loaded.protection) == ("111122223333", "eu-central-1", "retain")
    assert loaded.network.zones == ("euc1-az1", "euc1-az2")


@pytest.mark.parametrize("scenario", scenarios())
def test_every_scenario_is_a_beginning(tmp_path: Path, scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(tmp_path, "--scenario", scenario, "--name", "mine", "--account", "444455556666") == 0
    assert "podwright deploy mine --sandbox" in capsys.readouterr().out
    text = (tmp_path / "environments/mine.yaml").read_text()
    assert "$schema=environment.schema.json\n" in text
    assert "111122223333" not in text
    assert cli.main(["check", "--project", str(tmp_path)]) == 0


def test_a_scenario_in_another_region(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(tmp_path, "--scenario", "two-teams", "--region", "us-west-2") == 2
    assert "name 2 zones of us-west-2 with --zones, for use1-az4, use1-az6" in capsys.readouterr().err
    assert init(tmp_path, "--scenario", "two-teams", "--region", "us-west-2", "--zones", "usw2-az1") == 2
    assert "two-teams has 2 zones" in capsys.readouterr().err
    assert init(tmp_path, "--scenario", "two-teams", "--region", "us-west-2", "--zones", "usw2-az1,usw2-az2") == 0
    loaded = Project.at(tmp_path).load("two-teams").environment
    assert (loaded.region, loaded.network.zones) == ("us-west-2", ("usw2-az1", "usw2-az2"))
    assert "us-east-1" not in (tmp_path / "environments/two-teams.yaml").read_text()


def test_a_scenario_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(tmp_path, "--scenario", "three-teams") == 2
    assert "there is no scenario three-teams\n    → there are dev, eight-and-eight" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("region", ["us-east-1", "us-east-2", "us-west-2", "ap-northeast-1", "sa-east-1", "eu-north-1"])
def test_what_it_writes_passes_every_rule(tmp_path: Path, region: str) -> None:
    assert init(tmp_path, "--account", "111122223333", "--region", region) == 0
    assert cli.main(["check", "--project", str(tmp_path)]) == 0


def test_the_editors_schema_is_beside_the_file(tmp_path: Path) -> None:
    init(tmp_path)
    first = (tmp_path / "environments/sandbox.yaml").read_text().splitlines()[0]
    assert (tmp_path / "environments" / first.split("$schema=")[1]).is_file()


def test_a_second_run_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    init(tmp_path)
    before = files(tmp_path)
    capsys.readouterr()
    assert init(tmp_path) == 0
    assert files(tmp_path) == before
    assert "created" not in capsys.readouterr().out


def test_a_cloned_project_is_only_made_ready_for_this_machine(tmp_path: Path) -> None:
    init(tmp_path, "--name", "prod", "--account", "111122223333")
    (tmp_path / "environments/prod.yaml").write_text("account: changed by its owners\n")
    (tmp_path / ".podwright/python").unlink()
    before = files(tmp_path)
    assert init(tmp_path) == 0
    assert files(tmp_path) == before | {".podwright/python": f"{sys.executable}\n"}


def test_adds_an_environment_to_a_project(tmp_path: Path) -> None:
    init(tmp_path)
    assert init(tmp_path, "--name", "dev", "--account", "111122223333") == 0
    assert Project.at(tmp_path).names == ["dev", "sandbox"]


def test_never_overwrites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    init(tmp_path, "--name", "dev")
    (tmp_path / "environments/dev.yaml").write_text("mine")
    assert init(tmp_path, "--name", "dev") == 1
    assert (tmp_path / "environments/dev.yaml").read_text() == "mine"
    assert "exists and stays as it is" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["--account", "12"], "account is '12'"),
        (["--name", "Prod_1"], "name is 'Prod_1'"),
        (["--region", "us-west-22"], "us-west-22 is not a region"),
        (["--zones", "us-west-2a"], "us-west-2a"),
        (["--zones", "use1-az1,use1-az2"], "use1-az1"),
    ],
)
def test_a_wrong_value_is_2_and_writes_nothing(
    tmp_path: Path, arguments: list[str], output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(tmp_path / "new", *arguments) == 2
    assert not (tmp_path / "new").exists()
    assert output in capsys.readouterr().err


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    assert init(tmp_path / "taken") == 2


def test_cdk_json_makes_the_templates_that_a_checkout_makes(tmp_path: Path) -> None:
    init(tmp_path)
    ours = json.loads((Path(__file__).parents[3] / "cdk.json").read_text())
    theirs = json.loads((tmp_path / "cdk.json").read_text())
    assert theirs | {"app": ""} == {name: value for name, value in ours.items() if name != "context"} | {"app": ""}


def app_line(folder: Path) -> str:
    return json.loads((folder / "cdk.json").read_text())["app"].replace("-P -m podwright.bin.app", "-c 'print(3)'")


@pytest.mark.parametrize("name", ["cluster", "with a space"])
def test_the_app_line_finds_the_python_of_podwright(tmp_path: Path, name: str) -> None:
    """As the CDK CLI starts it: in a shell, in the project's folder, with nothing activated."""
    folder = tmp_path / name
    init(folder)
    python = folder / "the python"
    python.symlink_to(sys.executable)
    for variables, recorded in (({"PODWRIGHT_PYTHON": str(python)}, "/nowhere\n"), ({}, f"{python}\n")):
        (folder / ".podwright/python").write_text(recorded)
        result = subprocess.run(
            app_line(folder), shell=True, cwd=folder, env={"PATH": "/usr/bin:/bin", **variables}, capture_output=True
        )
        assert (result.stdout, result.stderr) == (b"3\n", b"")


def test_the_app_line_falls_back_to_the_path(tmp_path: Path) -> None:
    init(tmp_path)
    (tmp_path / ".podwright/python").unlink()
    (tmp_path / "python3").symlink_to(sys.executable)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    result = subprocess.run(app_line(tmp_path), shell=True, cwd=tmp_path, env=path, capture_output=True)
    assert (result.stdout, result.stderr) == (b"3\n", b"")


@pytest.mark.parametrize(
    "options", [(), ("--account", "111122223333", "--admins", "arn:aws:iam::111122223333:role/MlPlatform")]
)
def test_its_own_file_passes_without_a_warning(
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["init", str(tmp_path), *options]) == 0
    capsys.readouterr()
    assert cli.main(["check", "--project", str(tmp_path), "--json"]) == 0
    (checked,) = json.loads(capsys.readouterr().out)["environments"]
    assert {item["level"] for item in checked["findings"] if item["acknowledged"] is None} <= {"info"}


def test_an_admin_is_the_arn_of_a_role(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["init", str(tmp_path), "--account", "111122223333", "--admins", "MlPlatform"]) == 2
    assert "admins" in capsys.readouterr().err
