function show(name) {
  for (const part of document.querySelectorAll("main, nav button")) {
    part.classList.toggle("chosen", part.dataset.page === name);
  }
  for (const place of document.querySelectorAll("main.chosen .figure:empty")) {
    const { data, layout } = figures[place.id];
    Plotly.newPlot(place, data, layout, { displayModeBar: false, responsive: true });
  }
  history.replaceState(null, "", "#" + name);
}
for (const button of document.querySelectorAll("nav button")) button.onclick = () => show(button.dataset.page);
const wanted = location.hash.slice(1);
show(document.querySelector(`main[data-page="${wanted}"]`) ? wanted : document.querySelector("main").dataset.page);
