"""Pages in Debian's Chromium: frames of several widths, and a script that says what is wrong with each."""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from html import escape, unescape
from pathlib import Path
from typing import Any

from needs import needs

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
CHROMIUM_IS_THERE = needs(CHROMIUM, "Chromium: Debian's package chromium")
AXE = Path(__file__).parents[2] / ".podwright/axe-core-4.14.1/axe.min.js"
AXE_IS_THERE = needs(AXE.is_file(), "axe-core: .ci/run fetches it")
_QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-quic"),
)


def chromium(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it with a profile of its own."""
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as home:
        command = [str(CHROMIUM), *_QUIET, f"--user-data-dir={home}", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)


def measured(file: Path, body: str, script: str, *arguments: str, at: str = "", milliseconds: int = 5000) -> Any:
    """What a script says of a page with this body, once it has called `say`.

    `file` is where the page is written, and `at` its address where a server has it.
    """
    say = (
        "const say = out => { const said = document.createElement('pre'); said.id = 'said'; "
        "said.textContent = JSON.stringify(out); document.body.append(said); };"
    )
    file.write_text(
        f"<!doctype html><body>{body}<script>{say} onload = async () => {{ {script} }}</script></body>", "utf-8"
    )
    done = chromium("--dump-dom", f"--virtual-time-budget={milliseconds}", *arguments, at or file.as_uri())
    (output,) = re.findall(r'<pre id="said">(.*)</pre>', done.stdout, re.DOTALL)
    return json.loads(unescape(output))


def frames(name: str, text: str, widths: Iterable[int]) -> str:
    """A page in frames of several widths, which a script outside of them may measure."""
    return "".join(
        f'<iframe name="{name} {wide}" width="{wide}" height="900" srcdoc="{escape(text)}"></iframe>' for wide in widths
    )


def dark(theme: str) -> tuple[str, ...]:
    """The option of a theme."""
    return ("--force-dark-mode",) if theme == "dark" else ()


# What is serious or critical in a window, by the rules of WCAG that axe has; everything is open.
JUDGE = """
const judged = async view => {
  const result = await view.axe.run(view.document, { resultTypes: ["violations"] });
  return result.violations.filter(one => ["serious", "critical"].includes(one.impact))
    .map(one => `${one.id}: ${one.nodes.slice(0, 3).map(node => node.html.slice(0, 120)).join(" | ")}`);
};
"""
