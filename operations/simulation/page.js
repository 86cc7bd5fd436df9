const probe = document.body.appendChild(document.createElement("i"));
const colour = name => { probe.style.color = `var(${name})`; return getComputedStyle(probe).color; };
// A colour by its name in the style sheet becomes the one that it has now.
function painted(value) {
  if (typeof value === "string") return value.startsWith("--") ? colour(value) : value;
  if (Array.isArray(value)) return value.map(painted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, painted(each)]));
}
function draw() {
  for (const place of document.querySelectorAll(".figure")) {
    const { data, layout } = painted(figures[place.id]);
    Plotly.react(place, data, layout, { displayModeBar: false, responsive: true });
  }
}
draw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
