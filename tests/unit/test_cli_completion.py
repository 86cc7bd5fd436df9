"""`podwright completion`: the scripts of every shell, and what bash makes of its own."""

import shutil
import subprocess
from pathlib import Path

import pytest
import shtab

from needs import require
from podwright.operations import cli

PROD = """\
extends: shared/base.yaml
governance:
  teams:
    team-a: {}
jobs:
  # The first.
  train:
    kind: job
    tensor: 8

  tune: {kind: job}
platform:
  tools: {}
"""


def printed(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(["completion", shell]) == 0
    return capsys.readouterr().out


def write_environments(folder: Path) -> None:
    files = {
        "prod.yaml": PROD,
        "prod-eu.yaml": "jobs: {}\n",
        "dev.yaml": "name: dev\n",
        "proof.txt": "jobs:\n  text: {}\n",
        "shared/base.yaml": "jobs:\n    nightly:\n        kind: job\n",
    }
    for name, text in files.items():
        (folder / "environments" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "environments" / name).write_text(text)


@pytest.mark.parametrize("shell", shtab.SUPPORTED_SHELLS)
def test_every_command_is_in_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = printed(shell, capsys)
    assert [command.name for command in cli.COMMANDS if command.name not in script] == []
    assert "environments" in script


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["sch"], ["schema"]),
        (["capacity", "re"], ["reserve"]),
        (["deploy", "pr"], ["prod", "prod-eu"]),
        (["deploy", "--boot"], ["--bootstrap"]),
        (["completion", "z"], ["zsh"]),
        (["why", "pr"], ["prod", "prod-eu"]),
        (["logs", "prod", "x", "--sl"], ["--slowest"]),
        (["submit", "prod", "t"], ["train", "tune"]),
        (["logs", "--json", "prod", "tr"], ["train"]),
        (["why", "prod", "n"], ["nightly"]),
        (["stop", "dev", "t"], []),
    ],
    ids=" ".join,
)
def test_bash_completes(
    words: list[str], offered: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write_environments(tmp_path)
    line = " ".join(words)
    asked = f"""
        {printed("bash", capsys)}
        COMP_WORDS=(podwright {line}); COMP_CWORD={len(words)}; COMP_LINE="podwright {line}"
        $(complete -p podwright | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", asked], cwd=tmp_path, capture_output=True, text=True)
    assert sorted(item.strip() for item in done.stdout.split()) == offered, done.stderr


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("sch", ["schema"]),
        ("why pr", ["prod", "prod-eu"]),
        ("why prod t", ["train", "tune"]),
        ("submit prod ni", ["nightly"]),
        ("stop dev t", []),
    ],
)
def test_fish_completes(line: str, offered: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    require(shutil.which("fish"), "fish of Debian")
    write_environments(tmp_path)
    (tmp_path / "podwright.fish").write_text(printed("fish", capsys))
    asked = f"source podwright.fish; complete --do-complete 'podwright {line}'"
    done = subprocess.run(["fish", "--no-config", "-c", asked], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == ""
    assert sorted(text.partition("\t")[0] for text in done.stdout.splitlines()) == offered


def test_zsh_completes_jobs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The script is zsh, and its function prints the jobs of the words of a line."""
    require(shutil.which("zsh"), "zsh of Debian")
    write_environments(tmp_path)
    script = printed("zsh", capsys)
    (tmp_path / "_podwright").write_text(script)
    subprocess.run(["zsh", "-n", "_podwright"], cwd=tmp_path, check=True)
    function = script[(first := script.index("_podwright_jobs() {")) : script.index("\n}", first) + 2]
    asked = f"{function}\nwords=(podwright logs prod t); print -l $(_podwright_jobs $words)"
    done = subprocess.run(["zsh", "-f", "-c", asked], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == ["train", "tune", "nightly"], done.stderr
