"""What a client may read, the ways through the tools, the skill for coding agents, and how the server is started."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from agent_client import asked
from podwright.config.errors import CommandError
from podwright.operations import cli
from podwright.operations.agents.prompts import PROMPTS
from podwright.operations.agents.server import declared, server_of
from podwright.operations.agents.session import Session

ROOT = Path(__file__).resolve().parents[3]
NODE = "i-0123456789abcdef0"
ARGUMENTS = {"environment": "prod", "instance_type": "ml.g5.12xlarge", "job": "train", "group": "h200", "plan": "q1"}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    shutil.copytree(ROOT / "environments/shared", tmp_path / "environments/shared")
    shutil.copy(ROOT / "environments/prod.yaml", tmp_path / "environments")
    return Session(tmp_path)


def read(session: Session, uri: str) -> str:
    return asked(server_of(session), lambda client: client.read_resource(f"podwright://{uri}")).contents[0].text


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("schema", '"instance_groups"'),
        ("env/prod/resolved", '"settings"'),
        ("env/prod/findings", '"findings"'),
        ("docs/user/quotas", "# Quotas"),
        ("docs/user/agents", "# Manage clusters from an AI agent"),
        ("rules/NET003", "# NET003"),
        ("rules/GpuXid", "GpuXid"),
        ("catalog/ml.g5.12xlarge", "A10G"),
    ],
)
def test_a_document(uri: str, words: str, session: Session) -> None:
    assert words in read(session, uri)


@pytest.mark.parametrize(
    "uri",
    ["env/nope/resolved", "docs/../README", "docs/user/nope", "rules/NOPE", "rules/--help", "catalog/x", "answer/0"],
)
def test_what_is_not_there_is_said(uri: str, session: Session) -> None:
    assert "Internal" not in refused(session, uri)


def refused(session: Session, uri: str) -> str:
    """Why a document is not read."""

    async def tried(client: Any) -> str:
        with pytest.raises(MCPError) as raised:
            await client.read_resource(f"podwright://{uri}")
        return str(raised.value)

    return asked(server_of(session), tried)


def test_a_path_is_no_environment(session: Session) -> None:
    (session.project / "outside.yaml").write_text("region: us-west-2")
    assert "no environment outside.yaml" in refused(session, "env/outside.yaml/resolved")


@pytest.mark.parametrize("words", [("explain", "--help"), ("cost", "--help"), ("--version",)])
def test_no_option_ends_the_server(words: tuple[str, ...], session: Session) -> None:
    with pytest.raises(CommandError):
        session.ask(*words)


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_names_tools_that_there_are(name: str, session: Session) -> None:
    prompts = asked(server_of(session), lambda client: client.list_prompts()).prompts
    (prompt,) = [each for each in prompts if each.name == name]
    arguments = ARGUMENTS | {"count": "4", "node": NODE}
    chosen = {argument.name: arguments[argument.name] for argument in prompt.arguments}
    text = asked(server_of(session), lambda client: client.get_prompt(name, chosen)).messages[0].content.text
    known = {tool.name for tool, _ in declared(session, allow_changes=True)}
    named = set(re.findall(r"\b[a-z]+_[a-z_]+\b", text))
    assert named <= known
    assert all(value in text for value in chosen.values())


def test_the_skill_is_written_once_and_its_commands_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["init", str(tmp_path), "--skill"]) == 0
    file = tmp_path / ".agents/skills/podwright/SKILL.md"
    text = file.read_text()
    assert re.match(r"---\nname: podwright\ndescription: .{50,1024}\n---\n", text)
    assert not (tmp_path / "environments").exists()
    capsys.readouterr()
    for line in re.findall(r"^podwright (.*)$", text, re.MULTILINE):
        words = line.replace("ENV", "prod").split()
        cli.parser_of(words[0]).parse_args(words)
    file.write_text("mine")
    assert cli.main(["init", str(tmp_path), "--skill"]) == 1
    assert file.read_text() == "mine"


def test_the_skills_first_commands_run(session: Session) -> None:
    text = (ROOT / "operations/environments/skill.md").read_text()
    commands = re.findall(r"^podwright (.*)$", text.partition("## Read first")[2].partition("## ")[0], re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        session.ask(*command.replace("ENV", "prod").split())


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--max-upfront", "5"], "--allow-changes"), (["--allow-changes", "--max-upfront", "-1"], "dollars from 0")],
)
def test_a_limit_needs_what_it_limits(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["mcp", *options]) == 2
    assert words in capsys.readouterr().err


def test_without_the_sdk_the_command_says_what_to_install(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['mcp'] = None\n"
        "import importlib.util as util; find = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'mcp' else find(name, *rest)\n"
        "from podwright.operations import cli; sys.exit(cli.main(['mcp']))"
    )
    result = subprocess.run([sys.executable, "-P", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (2, "")
    assert "pip install 'podwright[mcp]'" in result.stderr


def test_standard_output_carries_the_protocol_alone(session: Session) -> None:
    """A client that sends no more than a request gets lines of JSON-RPC, whatever commands print."""
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        request | {"params": {"name": "explain", "arguments": {"id": "NET003"}}},
    ]
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "podwright.operations.cli", "mcp", "--project", str(session.project)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdin
    assert server.stdout
    server.stdin.write("".join(f"{json.dumps(line)}\n" for line in lines))
    server.stdin.flush()
    answers = [json.loads(server.stdout.readline()) for _ in range(2)]
    rest, _ = server.communicate()
    assert [answer["id"] for answer in answers] == [0, 1]
    assert "# NET003" in answers[1]["result"]["structuredContent"]["answer"]
    assert rest == ""
    assert server.returncode == 0
