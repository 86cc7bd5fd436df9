"""The documentation site: everything is on a page, every page in the navigation, and every link and anchor leads on.

`bin/docs` builds the HTML; these tests hold the pages that it is made of, and so need no generator of sites.
"""

import os
import re
import runpy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import command_pages
import construct_pages
import pages
import pytest
import session_picture
import setting_pages

from podwright.config.loading.project import ProjectSettings
from podwright.config.loading.schema import environment_schema
from podwright.operations.cli import COMMANDS, main
from podwright.planning.monitoring.alerts import alerts
from podwright.planning.rules.pages import titles

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^(#{1,6}) +(.+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def site() -> dict[str, str]:
    """The text of every page by its path."""
    return pages.texts()


def prose(text: str) -> str:
    """A page without its blocks of code."""
    return "".join(pages.FENCE.split(text)[::2])


def anchors(text: str) -> list[str]:
    """The anchors of a page's headings: those written out, else as the site's settings make them."""
    actual, observed = [], Counter[str]()
    for _, heading in HEADING.findall(prose(text)):
        written = re.search(r"\{ #([\w-]+) \}$", heading)
        bare = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = written[1] if written else re.sub(r"[^\w\- ]", "", bare).strip().replace(" ", "-")
        actual.append(f"{slug}_{observed[slug]}" if observed[slug] and not written else slug)
        observed[slug] += 1
    return actual


def test_every_picture_of_a_page_is_shown(site: dict[str, str], tmp_path: Path) -> None:
    written = [pages.ROOT / file for file in pages.written()]
    pictures = [name for file in written for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", file.read_text())]
    shown = [
        os.path.normpath(Path(page).parent / name)
        for page, text in site.items()
        for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    ]
    assert len(shown) == len(pictures) > 3
    pages.write(tmp_path / "docs")
    assert [name for name in shown if not (tmp_path / "docs" / name).is_file()] == []


def test_the_picture_of_a_session_is_what_the_command_prints() -> None:
    """`.venv/bin/python docs/site/session_picture.py docs/session.svg` draws it anew."""
    assert session_picture.picture() == (pages.ROOT / "docs/session.svg").read_text(encoding="utf-8")


def test_every_link_leads_to_a_page_and_an_anchor(site: dict[str, str]) -> None:
    known = {page: set(anchors(text)) for page, text in site.items()}
    files = {file.name for file in (pages.ROOT / "docs").iterdir() if file.suffix in (".json", ".svg")}
    dead = []
    for page, text in site.items():
        for target in LINK.findall(re.sub(r"`[^`]*`", "", prose(text))):
            name, _, anchor = target.partition("#")
            location = os.path.normpath(Path(page).parent / name) if name else page
            if re.match(r"[a-z]+:", target) or (location in files and not anchor):
                continue
            if location not in known or (anchor and anchor not in known[location]):
                dead.append(f"{page}: {target}")
    assert dead == []


def test_an_anchor_is_on_a_page_once(site: dict[str, str]) -> None:
    assert {page: [slug for slug, n in Counter(anchors(text)).items() if n > 1] for page, text in site.items()} == {
        page: [] for page in site
    }


def test_every_page_has_one_title(site: dict[str, str]) -> None:
    assert {page: sum(level == "#" for level, _ in HEADING.findall(prose(text))) for page, text in site.items()} == (
        dict.fromkeys(site, 1)
    )


def leaves(nav: pages.Nav) -> Iterator[str]:
    for item in nav:
        for below in item.values():
            yield from [below] if isinstance(below, str) else leaves(below)


def test_every_page_is_in_the_navigation_once(site: dict[str, str]) -> None:
    nav = pages.navigation({page: pages.title(text) for page, text in site.items()})
    assert Counter(leaves(nav)) == Counter(list(site))
    assert [name for item in nav for name in item][:4] == ["Start", "Tutorial", "Scenarios", "Guides"]


def test_a_new_page_of_docs_is_a_guide(site: dict[str, str]) -> None:
    known = {page: pages.title(text) for page, text in site.items()}
    nav = pages.navigation(known | {"promotion.md": "Promotion"})
    guides = next(item["Guides"] for item in nav if "Guides" in item)
    assert {"Promotion": "promotion.md"} in list(guides)


def test_every_setting_is_there(site: dict[str, str]) -> None:
    schema = environment_schema()
    text = "\n".join(text for page, text in site.items() if page.startswith(setting_pages.FOLDER))
    lost = [name for name in schema["properties"] if f"| `{name}` |" not in text]
    for model, definition in schema["$defs"].items():
        match = re.search(rf"^## {model} \{{ #[\w-]+ \}}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        section = match[1] if match else ""
        lost += [f"{model}.{name}" for name in definition.get("properties", ()) if f"| `{name}` |" not in section]
    lost += [name for name in ProjectSettings.model_fields if f"| `{name}` |" not in site["reference/project.md"]]
    assert lost == []


def test_values_and_defaults_of_settings(site: dict[str, str]) -> None:
    network, storage = site["reference/settings/network.md"], site["reference/settings/storage.md"]
    assert re.search(r"\| `endpoints` \| `standard`, `closed` \| `standard` \|", network)
    assert re.search(r"\| `throughput` \| whole number \| `250` \|", storage)
    assert "| `repositories` | list of [DataRepository](#model-datarepository), at most 8 | – |" in storage
    assert re.search(r"\| `zone` \| .* \| see there \|", storage)
    assert "At `storage.lustre`, `storage.additional_lustre.NAME`." in storage
    assert re.search(r"\| `account` \| .* \| \*\*required\*\* \|", site["reference/settings/index.md"])


def test_every_option_of_a_command_is_there(site: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """Each option that `--help` prints; it is argparse that prints it, and not the page's code."""
    missing, text = [], site[command_pages.PAGE]
    for command in (item.name for item in COMMANDS):
        section = re.search(rf"^## podwright {command}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        with pytest.raises(SystemExit):
            main([command, "--help"])
        options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", capsys.readouterr().out)) - {"--help", "--project"}
        known = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", section[1])) if section else set()
        missing += [f"{command} {option}" for option in sorted(options - known)]
    assert not missing, "\n".join(missing)


def test_every_finding_and_alert_has_an_anchor(site: dict[str, str]) -> None:
    existing = {f"{page}#{slug}" for page, text in site.items() for slug in anchors(text)}
    locations = pages.finding_pages
    expected = [*map(locations.finding_place, titles()), *map(locations.alert_place, alerts())]
    assert [location for location in expected if location not in existing] == []


def relinked(text: str) -> str:
    known = pages.places()
    return pages.relinked(text, Path("docs/operator/alerts.md"), "operator/alerts.md", known)


def test_links_follow_their_files() -> None:
    assert relinked("[x](../../planning/monitoring/runbooks/GpuXid.md)") == "[x](../reference/alerts/gpus.md#gpuxid)"
    assert relinked("[x](../../CHANGELOG.md#unreleased)") == "[x](../changelog.md#unreleased)"
    assert relinked("[x](../../environments/dev.yaml)") == "[x](../reference/environments/dev.md)"
    assert relinked("[x](#levels) [y](https://example.com/)") == "[x](#levels) [y](https://example.com/)"


def test_a_link_to_code_is_its_name_and_one_to_nothing_is_refused() -> None:
    assert relinked("see [the table](../../config/catalog/metrics.py)") == "see the table"
    with pytest.raises(pages.DeadLink, match=r"docs/operator/alerts\.md: \.\./nothing\.md leads nowhere"):
        relinked("[x](../nothing.md)")


def test_what_a_browser_would_load_from_elsewhere_is_seen(tmp_path: Path) -> None:
    built: dict[str, Any] = runpy.run_path(str(pages.ROOT / "docs/site/__main__.py"))
    (tmp_path / "good.html").write_text('<a href="https://example.com/">out</a><script src="assets/a.js"></script>')
    for number, tag in enumerate(
        (
            '<script src="https://example.com/a.js">',
            "<link rel=stylesheet href=//example.com/a.css>",
            '<img src="http://x/y">',
        )
    ):
        (tmp_path / f"bad{number}.html").write_text(tag)
    assert sorted(built["loaded_from_elsewhere"](tmp_path)) == ["bad0.html", "bad1.html", "bad2.html"]
    assert built["toml"]([{'a "b"': [{"c": "d.md"}]}]) == '[{ "a \\"b\\"" = [{ "c" = "d.md" }] }]'


def test_every_public_name_of_python_is_described(site: dict[str, str]) -> None:
    page = site[construct_pages.PAGE]
    names = [item.name for item in construct_pages.names()]
    assert [name for name in names if f"`{name}`" not in page] == []
    # Every argument and attribute says what it is.
    assert re.findall(r"^\| `\w+` \|.*\|  ?\|$", page, re.MULTILINE) == []


def test_names_of_python_are_all_found() -> None:
    exported = re.findall(r'^    "(\w+)",$', construct_pages.LIBRARY.read_text(), re.MULTILINE)
    assert [item.name for item in construct_pages.names()] == exported


def test_examples_stand_on_their_pages(site: dict[str, str]) -> None:
    programs = sorted((pages.ROOT / "docs/python").glob("*.py"))
    assert [file.name for file in programs if file.read_text().rstrip() not in site[f"python/{file.stem}.md"]] == []
    loop = (pages.ROOT / "docs/examples/elastic/train.py").read_text(encoding="utf-8").rstrip()
    assert loop in site["user/elastic.md"]
