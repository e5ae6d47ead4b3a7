// From the embedded data to the page: every section, every view of it, every chart in it.

const CHARTS = { lines: linesChart, dots: dotsChart, matrix: matrixChart, facts: factsView, nodes: nodesView, table: tableView };

function factsView(host, spec) {
  const list = el("dl", { class: "facts" });
  for (const [name, value] of spec.entries) {
    list.append(el("div", { class: value.length > 34 ? "wide" : null }, el("dt", {}, name), el("dd", { class: "mark" }, value)));
  }
  host.append(list);
}

function nodesView(host, spec) {
  let pick = null;
  if (spec.network) {
    const drawing = el("div", { class: "drawing" });
    host.append(drawing);
    pick = networkView(drawing, spec.network, spec.table);
  }
  const place = el("div", { class: "listing" });
  host.append(place);
  tableView(place, spec.table, pick);
}

function showCharts(place, charts) {
  place.replaceChildren();
  for (const spec of charts) {
    const figure = el("figure", { "data-kind": spec.kind, class: spec.wide ? "wide" : null });
    if (spec.title && spec.kind !== "facts") figure.append(el("figcaption", {}, spec.title));
    const host = el("div", { class: "host" });
    figure.append(host);
    place.append(figure);
    CHARTS[spec.kind](host, spec);
    if (spec.note) figure.append(el("p", { class: "note" }, spec.note));
  }
}

function showSection(spec, index) {
  const id = `section-${index}`;
  const section = el("section", { "aria-labelledby": id, class: spec.half ? "half" : null }, el("h2", { id }, spec.title));
  if (spec.text) section.append(el("p", { class: "lead" }, spec.text));
  const place = el("div", { class: "charts" });
  const first = spec.view ?? 0;
  if (spec.views.length > 1) {
    section.append(choices(spec.title, spec.views.map((view) => view.name), (chosen) => showCharts(place, spec.views[chosen].charts), first));
  }
  section.append(place);
  document.querySelector("main").append(section);
  showCharts(place, spec.views[first].charts);
}

const page = JSON.parse(document.getElementById("data").textContent);
document.body.append(tip);
page.sections.forEach(showSection);
document.addEventListener("scroll", hideTip, { passive: true });
document.addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
document.documentElement.dataset.ready = "yes";
