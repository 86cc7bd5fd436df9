"""The colours of the report in light and in dark, and its style sheet.

Every text colour has at least 4.5 to 1 on every ground that it stands on; a test computes that.
"""

from typing import Final

from .lettering import FAMILY

LIGHT: Final = {
    "ground": "#f4f6f9",
    "card": "#ffffff",
    "sunk": "#eef1f6",
    "ink": "#161b25",
    "soft": "#4a5364",
    "line": "#d3d9e3",
    "blue": "#1a56b0",
    "violet": "#6437ab",
    "green": "#176b3e",
    "orange": "#934700",
    "red": "#b1221b",
    "teal": "#0b6366",
    "blue-tint": "#e6effb",
    "violet-tint": "#efe8fa",
    "green-tint": "#e3f3e9",
    "orange-tint": "#fcefdf",
    "red-tint": "#fce8e6",
    "teal-tint": "#def2f2",
}
"""Colours by role on a light ground: ground, card and sunk are grounds, those with -tint as well; the rest is drawn."""
DARK: Final = {
    "ground": "#0e1219",
    "card": "#161c26",
    "sunk": "#1d2430",
    "ink": "#e9edf4",
    "soft": "#aab4c4",
    "line": "#313b4b",
    "blue": "#8bbcff",
    "violet": "#c6abff",
    "green": "#7fd8a4",
    "orange": "#f6b96f",
    "red": "#ffa198",
    "teal": "#76d6d6",
    "blue-tint": "#17283f",
    "violet-tint": "#271e3d",
    "green-tint": "#142e20",
    "orange-tint": "#352512",
    "red-tint": "#3b1a18",
    "teal-tint": "#122f30",
}
"""The same roles on a dark ground."""
HUES: Final = ("blue", "violet", "green", "orange", "red", "teal")
"""The colours that mean something. Each has a tint to stand on."""


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


def _hues() -> str:
    return "".join(f".{hue}{{--hue:var(--{hue});--tint:var(--{hue}-tint)}}" for hue in HUES)


_THEMES: Final = f"""
:root{{color-scheme:light dark;{_variables(LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}
@media print{{:root{{color-scheme:light;{_variables(LIGHT)}--ground:#ffffff;--sunk:#f7f8fa;}}}}
{_hues()}"""
_DRAWN: Final = f"""
.pw text{{font-family:{FAMILY};fill:var(--ink)}}
.pw .soft{{fill:var(--soft)}}
.pw .b{{font-weight:600}}
.pw .e{{text-anchor:end}}
.pw .m{{text-anchor:middle}}
.pw .ground{{fill:var(--ground)}}
.pw .card{{fill:var(--card);stroke:var(--line)}}
.pw .sunk{{fill:var(--sunk);stroke:var(--line)}}
.pw .box{{fill:none;stroke:var(--line);stroke-width:1.5}}
.pw .rule{{stroke:var(--line)}}
.pw .track{{fill:var(--line)}}
.pw .hue{{fill:var(--hue)}}
.pw .tint{{fill:var(--tint);stroke:var(--hue)}}
.pw .wash{{fill:var(--tint)}}
.pw .edge{{fill:none;stroke:var(--hue);stroke-width:1.5}}
.pw .may{{fill:none;stroke:var(--hue)}}
.pw .dashed{{stroke-dasharray:5 4}}
.pw text.word{{fill:var(--hue)}}
"""
DRAWING: Final = (_THEMES + _DRAWN).strip()
"""What a drawing needs to be a file of its own."""
_PAGE: Final = f"""
*{{box-sizing:border-box}}
html{{scroll-behavior:smooth;scroll-padding-top:1rem}}
@media (prefers-reduced-motion:reduce){{html{{scroll-behavior:auto}}}}
body{{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 {FAMILY};overflow-wrap:anywhere}}
a{{color:var(--blue)}}
:focus-visible{{outline:3px solid var(--blue);outline-offset:2px;border-radius:4px}}
.skip{{position:absolute;left:-99em}}
.skip:focus{{left:1rem;top:1rem;background:var(--card);padding:.5rem 1rem;z-index:3}}
.frame{{max-width:1480px;margin:0 auto;padding:0 1.5rem;display:grid;grid-template-columns:12.5rem minmax(0,1fr);gap:0 2.5rem}}
header{{grid-column:1/-1;padding:2.25rem 0 1.25rem}}
header p{{margin:0;color:var(--soft)}}
.eyebrow{{font-weight:600;letter-spacing:.02em}}
h1{{font-size:2.35rem;line-height:1.15;margin:.15rem 0 .35rem;letter-spacing:-.02em}}
h2{{font-size:1.3rem;margin:0 0 .25rem;letter-spacing:-.01em}}
h3{{font-size:1rem;margin:1.5rem 0 .5rem}}
nav{{position:sticky;top:0;align-self:start;padding:.25rem 0 2rem}}
nav ul{{list-style:none;margin:0;padding:0;border-left:2px solid var(--line)}}
nav a{{display:flex;justify-content:space-between;gap:.5rem;padding:.3rem 0 .3rem .9rem;margin-left:-2px;
 border-left:2px solid transparent;color:var(--soft);text-decoration:none}}
nav a:hover{{color:var(--ink);border-color:var(--blue)}}
main{{min-width:0;padding-bottom:3rem}}
.tiles{{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.75rem,1fr));gap:.75rem;margin:0 0 1.25rem;padding:0}}
.tiles>div{{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:.8rem 1rem;
 display:flex;flex-direction:column}}
.tiles dt{{color:var(--soft);font-size:.85rem}}
.tiles dd{{margin:0}}
.tiles .big{{font-size:1.55rem;font-weight:600;letter-spacing:-.02em;line-height:1.25;font-variant-numeric:tabular-nums}}
.tiles .small{{color:var(--soft);font-size:.85rem}}
section{{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:1.4rem 1.5rem;margin:0 0 1.25rem}}
section>p:first-of-type{{margin:.1rem 0 1rem;color:var(--soft)}}
p.note{{color:var(--soft);font-size:.9rem}}
figure{{margin:0}}
figcaption{{color:var(--soft);font-size:.9rem;margin-top:.5rem}}
.scroll{{overflow-x:auto;margin:.75rem 0}}
.scroll.drawing>svg{{min-width:60rem;width:100%;height:auto;display:block}}
.paper{{background:#ffffff;border-radius:8px;color-scheme:light}}
table{{border-collapse:collapse;width:100%;font-size:.9rem}}
caption{{text-align:left;color:var(--soft);padding:.15rem 0 .4rem}}
th,td{{text-align:left;padding:.4rem .9rem .4rem 0;border-bottom:1px solid var(--line);vertical-align:top;
 overflow-wrap:normal}}
tbody th{{font-weight:600}}
thead th{{font-weight:600;color:var(--soft);white-space:nowrap}}
td.n,th.n{{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}}
tbody tr:last-child>*{{border-bottom:0}}
code{{font:.88em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:var(--sunk);border-radius:4px;
 padding:.05em .3em;overflow-wrap:anywhere}}
.badge{{display:inline-block;font-size:.8rem;font-weight:600;line-height:1.4;padding:.1rem .5rem;border-radius:99px;
 color:var(--hue,var(--soft));background:var(--tint,var(--sunk));white-space:nowrap}}
.facts{{display:grid;grid-template-columns:repeat(auto-fit,minmax(14rem,1fr));gap:.35rem 1.5rem;margin:.5rem 0}}
.facts dt{{color:var(--soft);font-size:.85rem}}
.facts dd{{margin:0}}
ul.list{{list-style:none;padding:0;margin:.75rem 0}}
ul.list>li{{border-left:4px solid var(--hue,var(--line));background:var(--sunk);border-radius:0 8px 8px 0;
 padding:.6rem .9rem;margin:0 0 .6rem}}
ul.list p{{margin:.2rem 0 0}}
ul.plain{{margin:.25rem 0;padding-left:1.2rem}}
details{{margin:.5rem 0}}
summary{{cursor:pointer;padding:.3rem 0;font-weight:600}}
summary .badge{{margin-left:.35rem}}
details.role{{border-top:1px solid var(--line);margin:0}}
details.role>summary{{padding:.55rem 0;font-weight:400}}
details.role .by{{color:var(--soft);font-size:.9rem;margin-left:1.1rem}}
details.role>div,details.role>p,details.role>ul,details.role>dl{{margin-left:1.1rem}}
.legend{{display:flex;flex-wrap:wrap;gap:.35rem 1.25rem;list-style:none;margin:.5rem 0;padding:0;color:var(--soft);
 font-size:.9rem}}
.legend li>.mini{{display:inline-block;width:1.6rem;min-width:0;margin:0 .4rem 0 0}}
.chart{{display:block;width:100%;height:1.5rem}}
.mini{{display:block;width:100%;min-width:6.5rem;height:.7rem;margin:.3rem 0 .1rem}}
.mini+span{{white-space:nowrap;font-variant-numeric:tabular-nums}}
.kept{{fill:var(--blue)}}
.lent{{fill:var(--blue);fill-opacity:.5}}
.room{{fill:var(--orange-tint);stroke:var(--orange);stroke-width:.6;vector-effect:non-scaling-stroke}}
.none{{fill:var(--sunk);stroke:var(--line)}}
.odd{{fill:var(--blue)}}
.even{{fill:var(--violet)}}
footer{{grid-column:1/-1;color:var(--soft);font-size:.85rem;padding:0 0 2.5rem}}
@media (max-width:68rem){{
 .frame{{grid-template-columns:minmax(0,1fr);padding:0 1rem}}
 header{{padding-top:1.25rem}}
 h1{{font-size:1.8rem}}
 nav{{position:static;padding:0 0 1rem}}
 nav ul{{display:flex;flex-wrap:wrap;border:0;gap:.35rem}}
 nav a{{border:1px solid var(--line);border-radius:99px;padding:.15rem .7rem;margin:0;background:var(--card)}}
 section{{padding:1.1rem 1rem}}
}}
@media print{{
 @page{{size:A4;margin:14mm}}
 body{{font-size:10pt;background:#ffffff}}
 .frame{{display:block;max-width:none;padding:0}}
 nav,.skip{{display:none}}
 header{{padding:0 0 8pt}}
 section{{border:0;border-radius:0;padding:0;margin:0 0 14pt}}
 .tiles{{grid-template-columns:repeat(4,1fr)}}
 .tiles>div,ul.list>li,tr,figure{{break-inside:avoid}}
 h2,h3,caption,summary{{break-after:avoid}}
 thead{{display:table-header-group}}
 .scroll{{overflow:visible}}
 .scroll.drawing>svg{{min-width:0;max-height:240mm}}
 table{{font-size:8.5pt}}
 th,td{{padding-right:.5rem;overflow-wrap:anywhere}}
 .mini{{min-width:4rem}}
 details::details-content{{content-visibility:visible;block-size:auto}}
 a[href^="http"]::after{{content:" (" attr(href) ")";font-size:.85em}}
 .badge,.tiles>div,svg{{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
}}
"""
SHEET: Final = DRAWING + _PAGE
"""The style sheet of the page."""
