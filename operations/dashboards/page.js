// Lines are drawn in the colours of the page, which follow what the reader's system prefers.
const dark = matchMedia("(prefers-color-scheme: dark)");
const colours = () => {
  const style = getComputedStyle(document.documentElement);
  const [ink, grid, sheet] = ["--ink", "--grid", "--sheet"].map(name => style.getPropertyValue(name).trim());
  return { "font.color": ink, "xaxis.gridcolor": grid, "yaxis.gridcolor": grid,
    "hoverlabel.bgcolor": sheet, "hoverlabel.bordercolor": grid };
};
function show(name) {
  for (const part of document.querySelectorAll("main, nav button")) {
    part.classList.toggle("chosen", part.dataset.page === name);
  }
  for (const button of document.querySelectorAll("nav button")) {
    button.setAttribute("aria-pressed", button.dataset.page === name);
  }
  for (const place of document.querySelectorAll("main.chosen .figure:empty")) {
    const { data, layout } = figures[place.id];
    Plotly.newPlot(place, data, layout, { displayModeBar: false, responsive: true });
    Plotly.relayout(place, colours());
  }
  history.replaceState(null, "", "#" + name);
}
dark.addEventListener("change", () => {
  for (const place of document.querySelectorAll(".figure:not(:empty)")) Plotly.relayout(place, colours());
});
for (const button of document.querySelectorAll("nav button")) button.onclick = () => show(button.dataset.page);
const wanted = location.hash.slice(1);
show(document.querySelector(`main[data-page="${wanted}"]`) ? wanted : document.querySelector("main").dataset.page);
