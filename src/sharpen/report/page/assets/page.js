// From the embedded data to the page: every section, every view of it, every chart in it.

const CHARTS = {
  lines: linesChart,
  dots: dotsChart,
  matrix: matrixChart,
  forest: forestChart,
  heat: heatChart,
  sheet: sheetView,
  table: tableView,
  nodes: nodesView,
  facts: factsView,
  words: wordsView,
};

function wordsView(host, spec) {
  host.append(el("ul", { class: "words" }, ...spec.lines.map((line) => el("li", { class: "mark" }, line))));
}

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

function showSection(main, spec) {
  const id = `section-${main.childElementCount}`;
  const section = el("section", { "aria-labelledby": id, class: spec.half ? "half" : null });
  main.append(section);
  if (!spec.folded) {
    section.append(el("h2", { id }, spec.title));
    fillSection(section, spec);
    return;
  }
  // Drawn when it is first opened: a chart has no width before.
  const details = el("details", { class: "fold" }, el("summary", {}, el("h2", { id }, spec.title)));
  section.append(details);
  details.addEventListener("toggle", () => fillSection(details, spec), { once: true });
}

function fillSection(section, spec) {
  if (spec.text) section.append(el("p", { class: "lead" }, spec.text));
  if (spec.file) section.append(el("p", { class: "lead" }, "All of them: ", el("a", { href: spec.file, download: "" }, spec.file), ", beside this page."));
  const place = el("div", { class: "charts" });
  const first = spec.view ?? 0;
  if (spec.views.length > 1) {
    section.append(choices(spec.title, spec.views.map((view) => view.name), (chosen) => showCharts(place, spec.views[chosen].charts), first));
  }
  section.append(place);
  showCharts(place, spec.views[first].charts);
}

// A page of several studies shows one at a time, under one of its protocols; the address names it.
function showChapters(main, chapters, opened) {
  const named = chapters.findIndex((chapter) => location.hash === `#${chapter.id}`);
  let current = named < 0 ? opened : named;
  const intro = el("div", { class: "chapter" });
  const body = el("div", { class: "sections" });

  function show() {
    const chapter = chapters[current];
    intro.replaceChildren(el("h2", {}, chapter.title), el("p", { class: "lead" }, chapter.text));
    const fill = (view) => {
      hideTip();
      body.replaceChildren();
      chapter.views[view].sections.forEach((section) => showSection(body, section));
    };
    if (chapter.views.length > 1) intro.append(choices("Protocol", chapter.views.map((view) => view.name), fill, chapter.view));
    else intro.append(el("p", { class: "lead" }, `Run under ${chapter.views[0].name}.`));
    fill(chapter.view);
  }

  if (chapters.length > 1) {
    const select = choices(
      "Study",
      chapters.map((chapter) => chapter.title),
      (index) => {
        current = index;
        history.replaceState(null, "", `#${chapters[index].id}`);
        show();
      },
      current,
    );
    main.append(el("nav", { "aria-label": "Studies" }, select));
  }
  main.append(intro, body);
  show();
}

const page = JSON.parse(document.getElementById("data").textContent);
const main = document.querySelector("main");
document.body.append(tip);
if (page.chapters.length) showChapters(main, page.chapters, page.opened);
const sections = el("div", { class: "sections" });
main.append(sections);
page.sections.forEach((section) => showSection(sections, section));
document.addEventListener("scroll", hideTip, { passive: true });
document.addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
document.documentElement.dataset.ready = "yes";
