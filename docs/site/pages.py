"""The pages of the site: those of `docs/`, the README and the changelog, and what is made of the code.

A link to a file of the checkout becomes one to the page that the file went to. Where there is none, because the file is
code, its name stays as text: the site knows of no address at which the code can be looked at.
"""

import os
import re
import shutil
from pathlib import Path
from typing import Final

import command_pages
import construct_pages
import finding_pages
import setting_pages

ROOT: Final = Path(__file__).resolve().parents[2]
FENCE: Final = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
CELL_CODE: Final = re.compile(r"`[^`\n]+`")
LINK: Final = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")

Nav = list[dict[str, "str | Nav"]]


class DeadLink(ValueError):
    """A link to something that the checkout does not have."""


def written() -> dict[Path, str]:
    """Every page that somebody wrote, by its path in the checkout, with its path in the site."""
    docs = [file for file in sorted((ROOT / "docs").rglob("*.md")) if file.parent != Path(__file__).parent]
    return {
        Path("README.md"): "index.md",
        Path("CHANGELOG.md"): "changelog.md",
        Path("UPGRADING.md"): "upgrading.md",
    } | {file.relative_to(ROOT): str(file.relative_to(ROOT / "docs")) for file in docs}


def places() -> dict[Path, str]:
    """Where each file of the checkout went, with an anchor where it is a part of a page."""
    environments = {
        file.relative_to(ROOT): f"reference/environments/{file.stem}.md" for file in (ROOT / "environments").glob("*")
    }
    beside = {file.relative_to(ROOT): file.name for file in _beside()}
    folders = {Path("docs/decisions"): "decisions/index.md", Path("docs/operator"): "operator.md"}
    return written() | environments | beside | folders | finding_pages.sources()


def _beside() -> list[Path]:
    """What the pages name or show: schemas and pictures."""
    return sorted(file for file in (ROOT / "docs").iterdir() if file.suffix in (".json", ".svg"))


def relinked(text: str, source: Path, page: str, known: dict[Path, str]) -> str:
    """`text` of the file `source` with every link as page `page` needs it. Raises DeadLink."""

    def link(match: re.Match[str]) -> str:
        words, target = match.groups()
        name, _, anchor = target.partition("#")
        if not name or re.match(r"[a-z]+:", target):
            return match[0]
        file = Path(os.path.normpath(source.parent / name))
        if file not in known:
            if (ROOT / file).exists():
                return words
            raise DeadLink(f"{source}: {target} leads nowhere")
        place, _, part = known[file].partition("#")
        anchor = anchor or part
        to = os.path.relpath(place, Path(page).parent) if place != page else ""
        return f"[{words}]({to}{'#' if anchor else ''}{anchor})"

    parts = FENCE.split(text)
    parts[::2] = [LINK.sub(link, part) for part in parts[::2]]
    return "".join(parts)


def generated() -> dict[str, str]:
    """Every page that is made of the code, by its path in the site."""
    found = setting_pages.pages() | finding_pages.pages() | {command_pages.PAGE: command_pages.page()}
    found[construct_pages.PAGE] = construct_pages.page()
    for file in sorted((ROOT / "environments").glob("*.yaml")):
        found[f"reference/environments/{file.stem}.md"] = (
            f"# environments/{file.name}\n\n```yaml\n{file.read_text(encoding='utf-8').rstrip()}\n```\n"
        )
    lines = [
        f"- [{title(file.read_text(encoding='utf-8'))}]({file.name})"
        for file in sorted((ROOT / "docs/decisions").glob("*.md"))
    ]
    found["decisions/index.md"] = "\n".join(
        ("# Decisions", "", "Why it is built this way, half a page each, in the order of time.", "", *lines, "")
    )
    return found


def title(text: str) -> str:
    """The first heading of a page, without code marks."""
    match = re.search(r"^# +(.+)$", text, re.MULTILINE)
    if not match:
        raise ValueError(f"a page without a heading: {text[:60]!r}")
    return match[1].replace("`", "").strip()


def texts() -> dict[str, str]:
    """The text of every page by its path in the site."""
    known = places()
    found = {
        page: relinked((ROOT / file).read_text(encoding="utf-8") + program(file), file, page, known)
        for file, page in written().items()
    }
    return {page: rendered(text) for page, text in (found | generated()).items()}


def rendered(text: str) -> str:
    """`text` as the generator wants it.

    Bars of code in tables have no backslash, which only Git hosts need; blocks of commands, which name no language, are
    those of a shell, so that they may wrap.
    """
    parts = FENCE.split(text)
    for index in range(0, len(parts), 2):
        lines = parts[index].split("\n")
        parts[index] = "\n".join(
            CELL_CODE.sub(lambda code: code[0].replace("\\|", "|"), line) if line.startswith("|") else line
            for line in lines
        )
    parts[1::2] = [re.sub(r"\A( *```)(?=\n)", r"\1sh", part) for part in parts[1::2]]
    return "".join(parts)


def program(page: Path) -> str:
    """The program that a page explains, if there is one: beside it, or in the folder of examples of the same name."""
    folder = ROOT / "docs/examples" / page.stem
    files = [file for file in ((ROOT / page).with_suffix(".py"), folder / "train.py") if file.is_file()]
    return "".join(f"\n```python\n{file.read_text(encoding='utf-8').rstrip()}\n```\n" for file in files)


def write(folder: Path) -> Nav:
    """Write all pages into `folder`, which is emptied first, and return the navigation."""
    shutil.rmtree(folder, ignore_errors=True)
    found = texts()
    for page, text in found.items():
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        (folder / page).write_text(text, encoding="utf-8")
    for file in _beside():
        shutil.copy(file, folder)
    for name in ("site.css", "site.js", "iframe-worker.js"):
        shutil.copy(Path(__file__).parent / name, folder)
    return navigation({page: title(text) for page, text in found.items()})


def navigation(titles: dict[str, str]) -> Nav:
    """Every page, under the tab that it belongs to. A page of `docs/` that no tab names is a guide."""
    left = dict(titles)

    def take(*patterns: str) -> Nav:
        """The pages that fit, in the order of the patterns, then by name; a folder's index first."""
        chosen = [
            page
            for pattern in patterns
            for page in sorted(left, key=lambda page: (not page.endswith("index.md"), page))
            if Path("/", page).match(f"/{pattern}")
        ]
        return [{left.pop(page): page} for page in dict.fromkeys(chosen)]

    start, tutorial = take("index.md")[0], take("tutorial.md")[0]
    tabs: dict[str, str | Nav] = {"Start": start["podwright"], "Tutorial": next(iter(tutorial.values()))}
    tabs["Scenarios"] = take("scenarios/*.md")
    reference: Nav = [
        *take("cli.md", "reference/commands.md", "reference/constructs.md"),
        {"Settings": take("reference/settings/*.md")},
        *take("reference/project.md"),
        {"Environments": take("reference/environments/*.md")},
        {"Findings": take("rules.md", "reference/findings/*.md")},
        {"Alerts": take("reference/alerts/*.md")},
        *take("metrics.md", "catalog.md", "measurements.md"),
    ]
    architecture: Nav = [*take("architecture.md"), {"Decisions": take("decisions/*.md")}]
    project = take("contributor.md", "glossary.md", "upgrading.md", "changelog.md")
    # What is left in docs/ is a guide.
    guides: Nav = [
        {"Writing": take("user.md", "user/*.md")},
        {"Python": take("python/*.md")},
        {"Operating": take("operator.md", "operator/*.md")},
    ]
    tabs["Guides"] = [*guides, *take("*.md", "*/*.md")]
    tabs |= {"Reference": reference, "Architecture": architecture, "Project": project}
    return [{name: part} for name, part in tabs.items()]
