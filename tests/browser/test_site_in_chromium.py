"""The documentation's site of `bin/docs` in Chromium, in three widths, and in the light and the dark theme."""

import functools
import re
import subprocess
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

import pytest

from chromium import AXE, AXE_IS_THERE, CHROMIUM_IS_THERE, JUDGE, chromium, dark, measured
from needs import needs

ROOT = Path(__file__).parents[2]
pytestmark = [CHROMIUM_IS_THERE, needs(find_spec("zensical"), "the generator of the site, which `bin/docs` installs")]
WIDTHS = {"light": (390, 768, 1280), "dark": (1280,)}
"""Widths of the window by theme, since the layout does not depend on the theme."""
PAGES = (
    "index.html",
    "tour.html",
    "measurements.html",
    "reference/commands.html",
    "reference/settings/governance.html",
    "reference/findings/net.html",
    "scenarios/two-teams.html",
    "user/jobs.html",
)
"""The front page, pages with pictures, wide or generated tables, long commands and files."""
JUDGED = ("index.html", "tour.html", "reference/commands.html")
# Measures each frame: its overflow, elements beyond its width, missing pictures, and its background.
MEASURE = """
const wait = milliseconds => new Promise(done => setTimeout(done, milliseconds));
while ([...document.querySelectorAll("iframe")].some(frame => frame.contentDocument.readyState !== "complete"))
  await wait(100);
await wait(1000);
const out = {};
for (const frame of document.querySelectorAll("iframe")) {
  const page = frame.contentDocument, wide = page.documentElement.clientWidth;
  const scrolls = element => element.closest("pre, .md-typeset__scrollwrap, .highlight");
  const parts = [...page.querySelectorAll("main *")].filter(one => one.getClientRects().length && !scrolls(one));
  out[frame.name] = {
    overflow: page.documentElement.scrollWidth - wide,
    beyond: parts.filter(one => one.getBoundingClientRect().right > wide + 1).map(one => one.outerHTML.slice(0, 80)),
    broken: [...page.images].filter(one => !one.complete || !one.naturalWidth).map(one => one.src),
    folded: [...page.querySelectorAll(".language-sh code, .language-yaml code")]
      .filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.textContent.slice(0, 80)),
    ground: frame.contentWindow.getComputedStyle(page.body).backgroundColor,
  };
}
"""
# Types a word into the search of its page.
SEARCH = """<script>addEventListener("load", async () => {
  const wait = milliseconds => new Promise(done => setTimeout(done, milliseconds));
  const every = selector => [document, ...[...document.querySelectorAll("*")].map(one => one.shadowRoot)]
    .filter(Boolean).flatMap(root => [...root.querySelectorAll(selector)]);
  const until = async look => { for (let n = 0; n < 200 && !look(); n++) await wait(100); return look(); };
  document.querySelector(".md-search__button").click();
  const input = await until(() => every("input[aria-label=Search]")[0]);
  input.value = "preemption"; input.dispatchEvent(new InputEvent("input", { bubbles: true, composed: true }));
  await until(() => every("a").some(one => one.href.includes("?h=")));
  document.title = every("a").filter(one => one.href.includes("?h=")).map(one => one.href).join(" ");
});</script></head>"""


@pytest.fixture(scope="module")
def site() -> Path:
    """The site, which `bin/docs` builds unless it is up to date."""
    subprocess.run([ROOT / "bin/docs"], check=True, capture_output=True)
    return ROOT / ".podwright/site"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""


@pytest.fixture(scope="module")
def server(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of the served site, and the folder of its files."""
    folder = tmp_path_factory.mktemp("served")
    for part in site.iterdir():
        (folder / part.name).symlink_to(part)
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder))) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}", folder
        serving.shutdown()
        thread.join()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_fit_show_their_pictures_and_complain_of_nothing(
    theme: str, server: tuple[str, Path], tmp_path: Path
) -> None:
    address, folder = server
    body = "".join(
        f'<iframe name="{page} {wide}" width="{wide}" height="900" src="/{page}"></iframe>'
        for page in PAGES
        for wide in WIDTHS[theme]
    )
    log = tmp_path / "log"
    options = ("--enable-logging", f"--log-file={log}", *dark(theme))
    actual = measured(
        folder / "measured.html",
        body,
        f"{MEASURE} say(out);",
        *options,
        at=f"{address}/measured.html",
        milliseconds=30_000,
    )
    assert len(actual) == len(PAGES) * len(WIDTHS[theme])
    ground = {"light": "rgb(255, 255, 255)", "dark": "rgb(11, 12, 15)"}[theme]
    fine = {"overflow": 0, "beyond": [], "broken": [], "folded": [], "ground": ground}
    assert {name: observed for name, observed in actual.items() if observed != fine} == {}
    assert [line for line in log.read_text(errors="replace").splitlines() if "CONSOLE" in line] == []


@AXE_IS_THERE
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_in_the_way_of_a_reader_who_cannot_see_it(theme: str, server: tuple[str, Path]) -> None:
    address, folder = server
    (folder / "axe.js").write_bytes(AXE.read_bytes())
    body = "".join(f'<iframe name="{page}" width="1280" height="900" src="/{page}"></iframe>' for page in JUDGED)
    script = f"""{MEASURE} {JUDGE}
    const said = {{}};
    for (const frame of document.querySelectorAll("iframe")) {{
      const script = frame.contentDocument.createElement("script");
      script.src = "/axe.js";
      await new Promise(done => {{ script.onload = done; frame.contentDocument.body.append(script); }});
      said[frame.name] = await judged(frame.contentWindow);
    }}
    say(said);"""
    actual = measured(
        folder / "judged.html", body, script, *dark(theme), at=f"{address}/judged.html", milliseconds=120_000
    )
    assert actual == {page: [] for page in JUDGED}


def test_the_search_works_from_a_folder(site: Path, tmp_path: Path) -> None:
    for part in site.iterdir():
        (tmp_path / part.name).symlink_to(part)
    text = (site / "index.html").read_text(encoding="utf-8")
    (tmp_path / "searched.html").write_text(text.replace("</head>", SEARCH, 1), encoding="utf-8")
    done = chromium("--dump-dom", "--virtual-time-budget=30000", (tmp_path / "searched.html").as_uri())
    title = re.search(r"<title>(.*?)</title>", done.stdout)
    assert title
    assert "reference/alerts/teams.html" in title[1]


def test_every_picture_and_link_of_every_page_is_there(site: Path) -> None:
    anchors: dict[Path, set[str]] = {}
    texts = {file: file.read_text(encoding="utf-8") for file in site.rglob("*.html")}
    for file, text in texts.items():
        anchors[file] = set(re.findall(r'\bid="?([^"\s>]+)', text))
    lost = []
    for file, text in texts.items():
        for target in re.findall(r'\b(?:href|src)="([^"]*)"', text):
            name, _, anchor = unquote(target).partition("#")
            if re.match(r"[a-z]+:", name) or file.name == "404.html":
                continue
            location = (file.parent / name).resolve() if name else file
            if not location.is_file() or (
                anchor and location in anchors and anchor not in anchors[location] | {"__skip"}
            ):
                lost.append(f"{file.relative_to(site)}: {target}")
    assert len(texts) > 150
    assert lost == []


def test_bars_of_tables_have_no_backslash(site: Path) -> None:
    cells = re.compile(r"<t[dh][^>]*>(?:(?!</t[dh]>).)*\\\|", re.DOTALL)
    assert [str(file.relative_to(site)) for file in site.rglob("*.html") if cells.search(file.read_text("utf-8"))] == []
