import argparse
import ast
import io
import re
import shlex
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from podwright.config.errors import CommandError
from podwright.config.findings import Finding, Level, SourcePosition, counted
from podwright.operations import cli
from podwright.operations.command_help import EXAMPLES
from podwright.operations.commands import check
from podwright.operations.kubernetes.kubectl import Refused
from podwright.operations.output import console as output

ROOT = Path(__file__).parents[2]
PODWRIGHT = [sys.executable, "-P", "-m", "podwright.operations.cli"]
GOOD = """
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/dev.yaml").write_text(GOOD)
    return tmp_path


@pytest.mark.parametrize(
    ("word", "answer"),
    [("deply", "there is no command deply; did you mean deploy?"), ("x", "no command x; `podwright --help` lists all")],
)
def test_a_misspelt_command(word: str, answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main([word])
    assert answer in capsys.readouterr().err


def test_help_lists_every_command_and_imports_none(capsys: pytest.CaptureFixture[str]) -> None:
    program = (
        "import sys, podwright.operations.cli as cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit: print(sorted(m for m in sys.modules if m.startswith(('podwright.', 'pydantic', 'ruamel'))))"
    )
    result = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    imported = ast.literal_eval(result.stdout.splitlines()[-1])
    assert imported == [f"podwright.operations{name}" for name in ("", ".cli", ".command_help")]
    assert all(re.search(rf"^  {command.name}\s", result.stdout, re.MULTILINE) for command in cli.COMMANDS)


@pytest.mark.parametrize("width", [72, 80, 120])
def test_the_overview_has_each_command_once_and_fits(width: int) -> None:
    lines = cli.overview(width).splitlines()
    assert max(map(len, lines)) <= width
    listed = [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]
    assert sorted(listed) == sorted(command.name for command in cli.COMMANDS)


def test_every_command_can_be_called_and_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for command in cli.COMMANDS:
        module = import_module(command.module, "podwright.operations")
        assert callable(module.run)
        with pytest.raises(SystemExit) as stopped:
            cli.main([command.name, "--help"])
        assert stopped.value.code == 0
        printed = capsys.readouterr().out
        assert str(module.__doc__).split("\n\n")[0].split() == printed.split("\n\n")[1].split()
        assert printed.rstrip().endswith("\n".join(f"  podwright {line}" for line in EXAMPLES[command.name]))
        assert "--project" in printed


@pytest.fixture
def one_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command's parser is made once: a test that types hundreds of lines needs no other for each."""
    monkeypatch.setattr(cli, "parser_of", cache(cli.parser_of))


@pytest.mark.usefixtures("one_parser")
def test_examples_are_command_lines_that_their_commands_take() -> None:
    refused = []
    for name, line in ((name, line) for name, lines in EXAMPLES.items() for line in lines):
        words = shlex.split(line.partition(" > ")[0])
        try:
            accepted = set(name.split()) <= set(words) and vars(cli.parser_of(words[0]).parse_args(words))["run"]
        except SystemExit:
            accepted = False
        if not accepted:
            refused.append(line)
    assert not refused, "\n".join(refused)


@pytest.mark.parametrize("width", [72, 100, 200])
@pytest.mark.usefixtures("one_parser")
def test_help_is_as_wide_as_the_terminal(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And no wider than one reads. What a user copies stays on one line."""
    monkeypatch.setenv("COLUMNS", str(width))
    wide = []
    for name in EXAMPLES:
        with pytest.raises(SystemExit):
            cli.main([*name.replace("upgrade", "upgrade prod", " " in name).split(), "--help"])
        text, _, lines = capsys.readouterr().out.partition("\nexamples:\n")
        # Of usage, an option with what it takes is one word.
        long = [
            line for line in text.splitlines() if len(line) > min(width, 120) and not line.lstrip().startswith("[-")
        ]
        wide += [f"{name}: {line}" for line in long if len(line.split()) > 1]
        wide += [f"{name}: {line}" for line in lines.splitlines() if len(line) > 100]
    assert not wide, "\n".join(wide)


def _known(parser: argparse.ArgumentParser) -> set[str]:
    """What a parser and those below it may put into a namespace."""
    known = {*parser._defaults, *(action.dest for action in parser._actions)}
    below = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return known.union(*(_known(inner) for choices in below for inner in choices.values()))


def test_commands_read_only_arguments_that_they_have() -> None:
    unknown = {}
    for command in cli.COMMANDS:
        module = import_module(command.module, "podwright.operations")
        read = {
            node.attr
            for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text()))
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "args"
        }
        unknown[command.name] = read - _known(cli.parser_of(command.name))
    assert {name: names for name, names in unknown.items() if names} == {}


def test_the_reference_describes_exactly_these_commands() -> None:
    text = (ROOT / "docs/cli.md").read_text()
    described = [line.split("`")[1].split()[1] for line in text.splitlines() if line.startswith("## `podwright ")]
    assert described == [command.name for command in cli.COMMANDS]


@pytest.mark.parametrize("arguments", [[], ["chek"], ["check", "--jsn"]], ids=["nothing", "command", "option"])
def test_a_wrong_command_line_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2
    printed = capsys.readouterr().err
    assert printed.startswith("podwright: ")
    assert "usage:" not in printed
    assert " --help` lists what there is" in " ".join(printed.split())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("quotas", "quotas: ENV is missing → write it such as `podwright quotas prod`;"),
        ("size", "size: --parameters is missing → write it such as `podwright size --parameters 70B"),
        ("submit", "submit: ENV, JOB are missing"),
        (
            "render prod --output x",
            "render: there is no option --output; did you mean --out? → `podwright render --help`",
        ),
        ("jobs prod --teams llm", "jobs: there is no option --teams; did you mean --team?"),
        ("deploy prod --force", "deploy: there is no option --force; did you mean --yes?"),
        ("size --parameters 70B --on ml.p5.48xlarge", "size: there is no option --on; did you mean --type?"),
        ("cost prod --detail", "cost: there is no option --detail → write it such as `podwright cost prod`"),
        ("node reboot prod i-1 --forced", "node reboot: there is no option --forced"),
        ("cost prod dev", "cost: too many arguments: dev"),
        ("node restart prod i-1", "node: VERB: 'restart'; allowed: reboot, replace, health-check, quarantine, release"),
        ("completion csh", "completion: shell: 'csh'; allowed: bash, zsh, tcsh, fish, powershell; did you mean tcsh?"),
        ("logs prod x --rank two", "logs: --rank: 'two'; allowed: a whole number"),
        ("report prod --out", "report: --out needs a value"),
        ("gate prod --list --last", "gate: --last and --list exclude each other"),
        ("canary prod --wait soon", "canary: --wait: 'soon' is not a duration; write 90s, 45m"),
        (
            "capacity search prod --duration 28",
            "capacity search: --duration: '28' has no unit; write 28s, 28m, 28h or 28d",
        ),
        ("capacity search prod --start-after 04/01/2027", "--start-after: '04/01/2027'; allowed: a date such as"),
    ],
    ids=lambda text: text,
)
def test_a_wrong_command_line_is_told_what_to_type(
    line: str, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a few lines, without the usage: the argument, its value, what is allowed, and an example or the right name."""
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit, match="2"):
        cli.main(shlex.split(line))
    printed = capsys.readouterr().err
    assert message in " ".join(printed.split())
    assert len(printed.splitlines()) <= 6


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out.startswith("podwright 0.")


def test_finds_the_project_from_a_folder_inside(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = project / "notes/deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert cli.main(["check", "dev"]) == 0


def test_a_missing_project_folder_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "--project", "/nowhere/at/all"]) == 2
    assert "--project /nowhere/at/all is not a folder" in capsys.readouterr().err


def test_an_unknown_environment_is_2_and_names_the_known_ones(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["show", "production", "--project", str(project)]) == 2
    printed = capsys.readouterr().err
    assert "there is no environment 'production'" in printed
    assert "known: dev" in printed


def test_an_interrupt_is_130_and_one_line(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(check, "run", interrupted)
    assert cli.main(["check", "--project", str(project)]) == 130
    assert capsys.readouterr().err == "\npodwright: interrupted\n"


def test_a_stop_is_a_sentence_a_hint_and_its_code(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(_: object) -> int:
        raise CommandError("the account cannot be reached", "sign in", 1)

    monkeypatch.setattr(check, "run", stopped)
    assert cli.main(["check", "--project", str(project)]) == 1
    assert capsys.readouterr().err == "podwright: the account cannot be reached\n    → sign in\n"


@pytest.mark.parametrize(
    "error",
    [NoCredentialsError(), ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "ListStacks")],
    ids=lambda error: type(error).__name__,
)
def test_what_aws_refuses_is_a_sentence(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    def refused(_: object) -> int:
        raise error

    monkeypatch.setattr(check, "run", refused)
    assert cli.main(["check", "--project", str(project)]) == 1
    assert capsys.readouterr().err.startswith(f"podwright: AWS says: {error}\n")


def test_what_kubectl_refuses_in_the_middle_of_a_command_is_a_sentence(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(_: object) -> int:
        raise Refused("the server was unable to return a response in the time allotted")

    monkeypatch.setattr(check, "run", refused)
    assert cli.main(["check", "--project", str(project)]) == 1
    assert capsys.readouterr().err == (
        "podwright: the server was unable to return a response in the time allotted\n"
        "    → run the command again; if it fails in the same way, fix the cause that it names\n"
    )


def test_a_mistake_of_ours_is_not_hidden(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(check, "run", broken)
    with pytest.raises(ZeroDivisionError):
        cli.main(["check", "--project", str(project)])


def test_a_reader_that_leaves_early_is_no_failure(project: Path) -> None:
    """`podwright schema | head -1`: the schema is larger than a pipe holds."""
    command = f"{sys.executable} -P -m podwright.operations.cli schema | head -1"
    result = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "{\n", "")


def test_a_full_disk_is_a_sentence() -> None:
    command = f"{sys.executable} -P -m podwright.operations.cli schema >/dev/full"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert result.returncode == 1
    first, second = result.stderr.splitlines()
    assert (first, second.strip()) == (
        "podwright: [Errno 28] No space left on device",
        "→ free some of the disk, and run this again",
    )


FOUND = [
    Finding("NET003", Level.WARNING, "network.cidr", "is large", "make it smaller", SourcePosition("a.yaml", 7)),
    Finding(
        "GRP001",
        Level.ERROR,
        "instance_groups.a.count",
        "instance_groups.a.count is 0",
        "raise it",
        SourcePosition("a.yaml", 9),
    ),
    Finding(
        "EKS002",
        Level.ERROR,
        "cluster.eks.version",
        "is old",
        "upgrade",
        SourcePosition("a.yaml", 3),
        "upgraded next week",
    ),
    Finding("ENV009", Level.ERROR, "region", "is unknown", "fix it"),
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_findings_are_printed_worst_last_with_place_id_level_path_and_hint() -> None:
    stream = io.StringIO()
    output.write_findings(FOUND, stream)
    assert stream.getvalue().splitlines() == [
        "a.yaml:3  EKS002  accepted  cluster.eks.version: is old",
        "    accepted because upgraded next week",
        "a.yaml:7  NET003  warning  network.cidr: is large",
        "    → make it smaller",
        "ENV009  error  region: is unknown",
        "    → fix it",
        "a.yaml:9  GRP001  error  instance_groups.a.count is 0",
        "    → raise it",
    ]
    assert counted(FOUND) == "2 errors, 1 warning, 1 accepted"


def test_a_terminal_gets_colours_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    output.write_findings(FOUND, terminal := Terminal())
    assert "\x1b[1;31merror\x1b[0m" in terminal.getvalue()
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            output.write_findings(FOUND, plain := Terminal())
        assert "\x1b" not in plain.getvalue()
