// A table that can be sorted by any column and searched in all of them but numbers and remarks.

function textOf(column, row) {
  const value = column.values[row];
  if (column.names) return value === null || value < 0 ? "" : column.names[value];
  if (column.kind === "number") return value === null ? "" : number(value, column.decimals ?? 3);
  if (column.kind === "truth") return value === null ? "" : value ? "yes" : "no";
  return value ?? "";
}

function compareRows(column, a, b) {
  const [x, y] = [column.values[a], column.values[b]];
  if (x === null || y === null) return (x === null) - (y === null);
  if (column.kind === "number" || column.kind === "truth") return x - y;
  return textOf(column, a).localeCompare(textOf(column, b), "en", { numeric: true });
}

function tableView(host, spec, onpick) {
  const columns = spec.columns;
  const length = columns[0].values.length;
  // Who looks for node 34 does not look for a probability of 0.634.
  const words = columns.filter((column) => column.kind !== "number" && column.kind !== "remark");
  const haystack = Array.from({ length }, (_, row) => words.map((column) => textOf(column, row)).join("\u0000").toLowerCase());
  let order = { column: spec.sort ?? 0, down: spec.down ?? false };
  const first = spec.rows ?? 25;
  let limit = first;
  let rows = [];

  const search = el("input", { type: "search", placeholder: spec.search ?? "Search", "aria-label": spec.search ?? "Search" });
  const count = el("span", { class: "count", role: "status" });
  const more = el("button", { type: "button", class: "more" }, "Show more");
  const heads = columns.map((column, index) => {
    if (spec.plain) return el("th", { scope: "col", class: column.kind === "number" ? "right" : null }, column.name);
    const button = el("button", { type: "button" }, column.name);
    button.addEventListener("click", () => {
      order = { column: index, down: order.column === index ? !order.down : false };
      limit = first;
      refresh();
    });
    return el("th", { scope: "col", class: column.kind === "number" ? "right" : null }, button);
  });
  const body = el("tbody");

  function refresh() {
    const wanted = search.value.trim().toLowerCase();
    rows = [];
    for (let row = 0; row < length; row++) if (haystack[row].includes(wanted)) rows.push(row);
    const column = columns[order.column];
    rows.sort((a, b) => {
      const value = compareRows(column, a, b);
      const missing = column.values[a] === null || column.values[b] === null;
      return (order.down && !missing ? -value : value) || a - b;
    });
    heads.forEach((head, index) => head.setAttribute("aria-sort", index !== order.column ? "none" : order.down ? "descending" : "ascending"));
    count.textContent = rows.length === length ? `${number(length, 0)} ${spec.things}` : `${number(rows.length, 0)} of ${number(length, 0)} ${spec.things}`;
    show();
  }

  function show() {
    body.replaceChildren(...rows.slice(0, limit).map(line));
    more.hidden = rows.length <= limit;
  }

  function line(row) {
    const cells = columns.map((column, index) => {
      const text = textOf(column, row);
      if (onpick && index === 0) {
        return el("th", { scope: "row" }, el("button", { type: "button", class: "pick", title: "Show in the drawing", onclick: () => onpick(row) }, text));
      }
      const swatch = column.colors && text ? el("span", { class: "swatch", color: column.colors[column.values[row]] ?? "other" }) : null;
      return el(index === 0 ? "th" : "td", { scope: index === 0 ? "row" : null, class: { number: "right", class: "name", remark: "remark" }[column.kind] ?? null }, swatch, text);
    });
    return el("tr", { class: "mark" }, ...cells);
  }

  search.addEventListener("input", () => {
    limit = first;
    refresh();
  });
  more.addEventListener("click", () => {
    limit += 100;
    show();
  });
  const table = el("table", { class: "rows" }, el("thead", {}, el("tr", {}, ...heads)), body);
  // A few rows that are to be read in their order need no search.
  if (spec.plain) {
    host.append(el("div", { class: "scroll" }, table));
    body.append(...Array.from({ length }, (_, row) => line(row)));
    return;
  }
  host.append(el("div", { class: "bar" }, search, count), el("div", { class: "scroll" }, table), more);
  refresh();
}
