"""docs/user/agents.md, played: both sentences, a change that is refused, a stale plan, and a purchase.

A client of the SDK calls the tools of `podwright mcp`, a process of its own, on a project in the sandbox with the real
control plane, as a model would; its user is asked and answers. The page's transcript is what came of it.
"""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from agent_client import MODES
from agent_transcript import Conversation, Reply
from control_plane_parts import require_parts
from podwright.operations.agents.audit import FILE
from podwright.operations.aws import sandbox_server as server
from podwright.operations.programs.helm import tool
from story import ROOT

PAGE = ROOT / "docs/user/agents.md"
TRANSCRIPT = re.compile(r"(<!-- transcript -->\n```text\n)(.*?)(^```$)", re.MULTILINE | re.DOTALL)
PLAN = {"zone": "usw2-az1", "instance_type": "ml.trn1.32xlarge", "count": 4, "days": 14}
LIMIT = "400000"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The project of `podwright init`, with a sandbox."""
    require_parts("kueue", "training-operator")
    folder = tmp_path_factory.mktemp("agents")
    run(folder, "init", str(folder))
    server.start(folder, port=0, time_scale=0.1, kubernetes="real")
    yield folder
    server.stop(folder)


@pytest.fixture(scope="module")
def conversation(project: Path) -> Conversation:
    """The conversation that the tests examine."""
    return asyncio.run(converse(project))


def run(folder: Path, *words: str) -> str:
    command = [sys.executable, "-P", "-m", "podwright.operations.cli", *words]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def difference(reply: Reply) -> str:
    """The lines of a difference that change, findings and money."""
    lines = [line for line in reply["diff"].splitlines() if re.match(r"[-+] ", line)]
    shown = lines if len(lines) < 6 else [f"{len(lines)} new lines, such as {lines[-1].strip('+ ')}"]
    cost = {
        when: (reply["cost"][when] or {"summary": "nothing"})["summary"].partition(";")[0] for when in reply["cost"]
    }
    money = f"cost: {cost['before']} → {cost['after']}"
    return "\n".join([f"edit_id: {reply['edit_id']}, simulated: {reply['simulated']}", *shown, money])


def nodes(reply: Reply) -> str:
    """The groups of a cluster."""
    groups = ", ".join(
        f"{group['name']} {group['current']} of {group['target']}" for group in reply["answer"]["groups"]
    )
    return f"{reply['answer']['cluster']['status']}: {groups}"


async def converse(project: Path) -> Conversation:
    async with AsyncExitStack() as stack:
        talk = await Conversation.begun(stack, project, "--allow-changes", "--max-upfront", LIMIT)
        await create(talk)
        await scale(talk)
        await stale(talk, project / "environments/demo.yaml")
        await purchase(talk)
        return talk


async def create(talk: Conversation) -> None:
    talk.says("Create a cluster with 4 G5 12X instances.")
    arguments = {"environment": "demo", "instance_type": "ml.g5.12xlarge", "count": 4, "reason": "a first cluster"}
    edit = await talk.call("propose_environment", difference, **arguments)
    await talk.call("write_edit", environment="demo", edit_id=edit["edit_id"])
    plan = await talk.call("diff", environment="demo")
    assert "plan_id" in plan, plan
    talk.types("demo")
    await talk.call("deploy", environment="demo", plan_id=plan["plan_id"])
    await talk.call("status", nodes, environment="demo")


async def scale(talk: Conversation) -> None:
    talk.says("Scale up my cluster from 4 instances to 8 instances.")
    arguments = {"environment": "demo", "group": "training", "count": 8}
    plan = await talk.call("plan_scale", **arguments)
    talk.types("not now")
    await talk.call("scale_group", environment="demo", plan_id=plan["plan_id"])
    await talk.call("status", nodes, environment="demo")
    talk.says("I have looked at the cost. Do it.")
    plan = await talk.call("plan_scale", **arguments)
    talk.types("demo")
    await talk.call("scale_group", environment="demo", plan_id=plan["plan_id"])
    await talk.call("scale_group", environment="demo", plan_id=plan["plan_id"])
    await talk.call("status", nodes, environment="demo")


async def stale(talk: Conversation, file: Path) -> None:
    talk.says("Add a ninth.")
    plan = await talk.call("plan_scale", environment="demo", group="training", count=9)
    talk.lines.append("         (somebody edits environments/demo.yaml meanwhile)")
    file.write_text(file.read_text() + "# A note.\n")
    await talk.call("scale_group", environment="demo", plan_id=plan["plan_id"])


async def purchase(talk: Conversation) -> None:
    talk.says("Reserve 4 Trainium instances for two weeks, for at most 1,000 dollars.")
    setting = {"path": "training_plans.pilot", "value": PLAN}
    edit = await talk.call("propose_edit", difference, environment="demo", settings=[setting], reason="a pilot")
    await talk.call("write_edit", environment="demo", edit_id=edit["edit_id"])
    arguments = {"environment": "demo", "plan": "pilot"}
    await talk.call("plan_purchase", **arguments, max_upfront_usd=1_000)
    talk.says("Then for at most 100,000.")
    plan = await talk.call("plan_purchase", **arguments, max_upfront_usd=100_000)
    talk.types("demo")
    await talk.call("reserve_capacity", environment="demo", plan_id=plan["plan_id"])


def test_the_transcript_is_what_happens(conversation: Conversation, request: pytest.FixtureRequest) -> None:
    text = "".join(f"{line.rstrip()}\n" for line in conversation.lines[1:])
    page = PAGE.read_text(encoding="utf-8")
    if request.config.getoption("--update-snapshots"):
        PAGE.write_text(TRANSCRIPT.sub(lambda match: match[1] + text + match[3], page), encoding="utf-8")
    match = TRANSCRIPT.search(PAGE.read_text(encoding="utf-8"))
    assert match
    assert without_amounts(match[2]) == without_amounts(text)


def without_amounts(text: str) -> str:
    """The same whatever the day costs: EKS takes more for a version from the end of its standard support on."""
    return re.sub(r"\$[0-9,.]+[0-9]", "$", text)


def test_what_takes_minutes_tells_what_it_does(conversation: Conversation) -> None:
    deployed, scaled = conversation.told["deploy"], conversation.told["scale_group"]
    assert any(line.startswith("demo → ") for line in deployed)
    assert any(re.match(r"demo-network +\d+ resources", line) for line in deployed)
    assert any(line.startswith("demo: deployed in ") for line in deployed)
    assert "environments/demo.yaml: training has count 8" in scaled
    # The plan needs the templates of the new count, and the deployment reuses them.
    assert any(line.split()[:2] == ["synthesis", "reused:"] for line in scaled)


@pytest.mark.usefixtures("conversation")
def test_the_cluster_has_eight_nodes(project: Path) -> None:
    """As the API server has them, and the file."""
    run(project, "connect", "demo")
    kubectl = [str(tool("kubectl")), "--kubeconfig", str(project / ".podwright/kubeconfig/demo")]
    output = subprocess.run([*kubectl, "get", "nodes", "--output=json"], check=True, capture_output=True, text=True)
    listed = json.loads(output.stdout)["items"]
    group = "sagemaker.amazonaws.com/instance-group-name"
    assert sum(item["metadata"]["labels"].get(group) == "training" for item in listed) == 8
    assert "count: 8" in (project / "environments/demo.yaml").read_text()


@pytest.mark.usefixtures("conversation")
def test_one_plan_was_bought_and_is_in_the_file(project: Path) -> None:
    plans: list[dict[str, Any]] = json.loads(run(project, "capacity", "show", "demo", "--json"))["plans"]
    assert len(plans) == 1
    assert "arn: arn:aws:sagemaker:" in (project / "environments/demo.yaml").read_text()


@pytest.mark.usefixtures("conversation")
def test_the_record_has_every_change_and_every_no(project: Path) -> None:
    steps = [json.loads(line) for line in (project / FILE).read_text().splitlines()]
    assert [(step["tool"], step["step"]) for step in steps if step["tool"] != "write_edit"] == [
        ("deploy", "begun"),
        ("deploy", "made"),
        ("scale_group", "declined"),
        ("scale_group", "begun"),
        ("scale_group", "made"),
        ("scale_group", "stale"),
        ("reserve_capacity", "begun"),
        ("reserve_capacity", "made"),
    ]
    assert all(step["simulated"] for step in steps if "account" in step)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.usefixtures("conversation")
def test_a_second_server_knows_no_plan_of_the_first(project: Path, mode: str) -> None:
    async def tried() -> Reply:
        async with AsyncExitStack() as stack:
            talk = await Conversation.begun(stack, project, "--allow-changes", mode=mode)
            return await talk.call("deploy", environment="demo", plan_id="0" * 32)

    assert "waits" in asyncio.run(tried())["findings"][0]["message"]


@pytest.mark.usefixtures("conversation")
def test_the_commands_of_the_skill_run(project: Path) -> None:
    file = Path(run(project, "init", str(project), "--skill").split()[-1])
    commands = re.findall(
        r"^podwright (.*)$", "".join(re.findall(r"```bash\n(.*?)```", file.read_text(), re.DOTALL)), re.M
    )
    assert len(commands) > 8
    for command in commands:
        run(project, *command.replace("ENV", "demo").split())
