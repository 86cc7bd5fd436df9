"""Builds the documentation site into `.podwright/site`: `bin/docs [--serve]`.

Pages are written to `.podwright/docs` first; then zensical makes HTML of them, and any warning of it is a failure.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from pages import ROOT, DeadLink, Nav, write

BUILT = ROOT / ".podwright"
# What a browser would load by itself from another machine. Links that a reader follows are none of that.
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?(?:https?:)?//|"
    r"<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preload|preconnect|modulepreload))[^>]*\bhref=[\"']?(?:https?:)?//"
)


def toml(value: "str | Nav") -> str:
    """A navigation as TOML."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return (
        "[" + ", ".join(f"{{ {toml(name)} = {toml(below)} }}" for item in value for name, below in item.items()) + "]"
    )


def configure(folder: Path, nav: Nav) -> Path:
    """Write the settings of zensical beside the pages, and return their file."""
    settings = (Path(__file__).parent / "zensical.toml").read_text(encoding="utf-8")
    own = f'[project]\ndocs_dir = "docs"\nsite_dir = "site"\nnav = {toml(nav)}\n'
    file = folder / "zensical.toml"
    file.write_text(settings.replace("[project]\n", own, 1), encoding="utf-8")
    return file


def loaded_from_elsewhere(site: Path) -> list[str]:
    """Pages that would make a browser ask another machine for something."""
    return [str(page.relative_to(site)) for page in site.rglob("*.html") if LOADED.search(page.read_text("utf-8"))]


def main() -> int:
    """Write the pages and build the site."""
    parser = argparse.ArgumentParser(prog="bin/docs", description=__doc__)
    parser.add_argument(
        "--serve", action="store_true", help="show the site on this machine and build it on each change"
    )
    args = parser.parse_args()
    BUILT.mkdir(exist_ok=True)
    try:
        file = configure(BUILT, write(BUILT / "docs"))
    except DeadLink as error:
        sys.stderr.write(f"docs: {error}\n")
        return 1
    words = ["serve"] if args.serve else ["build", "--clean", "--strict"]
    command = [Path(sys.executable).parent / "zensical", *words, "--config-file", file]
    # Links of the terminal's kind, which zensical writes into logs too, are no use there.
    done = subprocess.run(command, cwd=BUILT, env=os.environ | {"NO_COLOR": "1"})
    if done.returncode or args.serve:
        return done.returncode
    if pages := loaded_from_elsewhere(BUILT / "site"):
        sys.stderr.write(f"docs: loads something from another machine: {', '.join(pages[:5])}\n")
        return 1
    sys.stdout.write(f"docs: {BUILT / 'site/index.html'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
