"""Draws the session of the README: `.venv/bin/python docs/site/session_picture.py docs/session.svg`.

The command is really run, at a terminal of its own, in a project whose environment has mistakes.
"""

import io
import os
import pty
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

WIDTH: Final = 100
COMMAND: Final = "podwright check dev"
DAY: Final = "2026-08-01"
"""The day that it takes for today: the picture is the same on every other."""
MISTAKES: Final = """\
account: "111122223333"
region: us-west-2
network: {cidr: 10.16.0.0/22, zones: [usw2-az2, usw2-az3]}
cluster: {zones: [usw2-az2, usw2-az3]}
storage: {lustre: {zone: usw2-az3, throughput: 1000, efa: true, capacity_gib: 2400}}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  h100: {instance_type: ml.p5.48xlarge, count: 16, zone: usw2-az2}
"""
# Of rich's own frame, without the fonts that it loads from elsewhere.
FRAME: Final = """\
<svg class="session" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img"
  aria-label="What podwright check prints">
<style>
.{unique_id}-matrix {{ font-family: DejaVu Sans Mono, Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def said(command: str, project: Path) -> str:
    """What a command prints at a terminal, colours included."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    words = [sys.executable, "-P", "-m", "podwright.operations.cli", *command.split()[1:]]
    process = subprocess.Popen(words, cwd=project, env=environment, stdout=theirs, stderr=theirs, close_fds=True)
    os.close(theirs)
    result = io.BytesIO()
    while True:
        try:
            result.write(os.read(ours, 65536))
        except OSError:
            # Its end: nobody holds the terminal any more.
            break
    os.close(ours)
    process.wait()
    return result.getvalue().decode().replace("\r\n", "\n")


def picture() -> str:
    """The session as SVG."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="standard")
    with tempfile.TemporaryDirectory() as name:
        project = Path(name)
        (project / "environments").mkdir()
        (project / "environments/dev.yaml").write_text(MISTAKES)
        console.print(Text(f"$ {COMMAND}", style="bold"))
        console.print(Text.from_ansi(said(f"{COMMAND} --date {DAY}", project)))
    return console.export_svg(title="podwright", theme=MONOKAI, code_format=FRAME, unique_id="session")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(), encoding="utf-8")
