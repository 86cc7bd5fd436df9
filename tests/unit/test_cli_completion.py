"""`podwright completion`: the scripts of every shell, and what bash makes of its own."""

import subprocess
from pathlib import Path

import pytest
import shtab

from podwright.operations import cli


def printed(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", shtab.SUPPORTED_SHELLS)
def test_every_command_is_in_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = printed(shell, capsys)
    assert [command.name for command in cli.COMMANDS if command.name not in script] == []
    assert "ls environments" in script


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
    ],
    ids=" ".join,
)
def test_bash_completes(
    words: list[str], offered: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "environments").mkdir()
    for name in ("prod.yaml", "prod-eu.yaml", "dev.yaml", "proof.txt"):
        (tmp_path / "environments" / name).touch()
    line = " ".join(words)
    asked = f"""
        {printed("bash", capsys)}
        COMP_WORDS=(podwright {line}); COMP_CWORD={len(words)}; COMP_LINE="podwright {line}"
        $(complete -p podwright | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", asked], cwd=tmp_path, capture_output=True, text=True)
    assert sorted(item.strip() for item in done.stdout.split()) == offered, done.stderr
