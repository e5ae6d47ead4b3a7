// A confusion matrix as a real table: rows are what nodes are, columns what they are predicted to be.

function matrixChart(host, spec) {
  const names = spec.names;
  const shares = spec.counts.map((row) => {
    const total = row.reduce((sum, count) => sum + count, 0);
    return row.map((count) => (total ? count / total : 0));
  });
  const long = Math.max(...names.map((name) => name.length)) > (names.length <= 4 ? 9 : 3);
  const dense = names.length > 16;
  const head = el("tr", {}, el("td", { class: "corner" }, "true ↓", el("br"), "predicted →"));
  for (const name of names) head.append(el("th", { scope: "col", class: long || dense ? "turned" : null, title: name }, el("span", {}, name)));
  const body = el("tbody");
  names.forEach((name, i) => {
    const row = el("tr", {}, el("th", { scope: "row", title: name }, el("span", {}, name)));
    const total = spec.counts[i].reduce((sum, count) => sum + count, 0);
    names.forEach((other, j) => {
      const share = shares[i][j];
      const text = !total ? "" : dense ? "" : share === 0 ? "·" : number(100 * share, share < 0.1 ? 1 : 0);
      const cell = el("td", { class: `mark${share > 0.55 ? " deep" : ""}${i === j ? " right" : ""}`, "aria-label": `${number(100 * share, 1)} %` }, text);
      cell.style.setProperty("--share", `${Math.round(100 * Math.sqrt(share))}%`);
      const tell = (event) =>
        showTip(
          [`true ${name}`, `predicted ${other}`, `${number(spec.counts[i][j], 0)} of ${number(total, 0)}, ${number(100 * share, 1)} %`],
          event.clientX,
          event.clientY,
        );
      cell.addEventListener("pointermove", tell);
      cell.addEventListener("pointerleave", hideTip);
      row.append(cell);
    });
    body.append(row);
  });
  const table = el("table", { class: `matrix${dense ? " dense" : names.length <= 4 ? " roomy" : ""}`, "aria-label": "Rows: true class. Columns: predicted class." }, el("thead", {}, head), body);
  host.append(el("div", { class: "scroll" }, table));
}
