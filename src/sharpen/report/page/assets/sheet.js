// A table in the paper's layout. A cell that knows more opens below the table: its λ curve and its runs.

function sheetView(host, spec) {
  const panel = el("div", { class: "panel", hidden: true });
  const body = el("tbody");
  let opened = null;

  function open(button, detail) {
    if (opened) opened.setAttribute("aria-expanded", "false");
    if (opened === button) {
      opened = null;
      panel.hidden = true;
      panel.replaceChildren();
      return;
    }
    opened = button;
    button.setAttribute("aria-expanded", "true");
    const close = el("button", { type: "button", class: "close", "aria-label": "Close" }, "×");
    close.addEventListener("click", () => {
      open(button, detail);
      button.focus();
    });
    const place = el("div", { class: "charts" });
    panel.replaceChildren(el("h3", {}, detail.title), close, place);
    panel.hidden = false;
    showCharts(place, detail.charts);
    panel.scrollIntoView({ block: "nearest" });
  }

  function lines(place) {
    return place.map((line) => {
      if (!line.more) return el("div", { class: [line.bold && "bold", line.muted && "muted", line.tone].filter(Boolean).join(" ") || null }, line.text);
      const gain = line.gain ? el("span", { class: ["gained", line.sure && "bold", line.tone].filter(Boolean).join(" ") }, line.gain) : null;
      const own = el("div", { class: `one${line.muted ? " muted" : ""}` }, el("span", { class: gain ? "score" : null }, line.text), gain);
      own.addEventListener("pointermove", (event) => showTip(line.more, event.clientX, event.clientY));
      own.addEventListener("pointerleave", hideTip);
      return own;
    });
  }

  spec.rows.forEach((row, i) => {
    const cells = row.map((place, j) => {
      const align = { class: spec.columns[j].align === "left" ? null : spec.columns[j].align };
      if (j === 0) return el("th", { scope: "row", ...align }, ...lines(place));
      const detail = spec.details?.[i]?.[j];
      if (!detail) return el("td", { ...align }, ...lines(place));
      const button = el("button", { type: "button", class: "cell mark", "aria-expanded": "false" }, ...lines(place));
      button.addEventListener("click", () => open(button, detail));
      return el("td", { ...align }, button);
    });
    body.append(el("tr", { class: `mark${spec.rules.includes(i) ? " ruled" : ""}` }, ...cells));
  });
  const groups = spec.columns.some((column) => column.group) ? groupRow(spec.columns) : null;
  const head = el("tr", {}, ...spec.columns.map((column) => el("th", { scope: "col", class: column.align === "left" ? null : column.align }, column.title)));
  host.append(el("div", { class: "scroll" }, el("table", { class: "sheet" }, el("thead", {}, groups, head), body)), panel);
  if (spec.details) host.append(el("p", { class: "note" }, "A cell with numbers opens: its runs, its λ curve where the grid was run, and all else that is known of it."));
  for (const note of spec.notes) host.append(el("p", { class: "note" }, note));
  if (spec.exports) host.append(exportsView(spec.exports));
}

function groupRow(columns) {
  const row = el("tr");
  for (let i = 0; i < columns.length; ) {
    let width = 1;
    while (i + width < columns.length && columns[i].group && columns[i + width].group === columns[i].group) width++;
    row.append(el("th", { colspan: width, class: "center" }, columns[i].group));
    i += width;
  }
  return row;
}

// The same table as text for other programs, to be copied.
function exportsView(texts) {
  const names = Object.keys(texts);
  const area = el("textarea", { readonly: true, rows: 10, spellcheck: "false", "aria-label": "The table as text" });
  const copy = el("button", { type: "button", class: "more" }, "Copy");
  const details = el("details", { class: "exports" }, el("summary", {}, `Export: ${names.join(", ")}`));
  const show = (index) => {
    area.value = texts[names[index]];
    copy.textContent = "Copy";
  };
  copy.addEventListener("click", async () => {
    area.select();
    try {
      await navigator.clipboard.writeText(area.value);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Selected: press Ctrl-C";
    }
  });
  details.append(choices("Format", names, show), area, copy);
  show(0);
  return details;
}
