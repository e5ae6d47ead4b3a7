// Means with their intervals, one row each, in groups: differences of all cells, or scores of all methods.

function forestChart(host, spec) {
  const step = 22;
  const surface = draw("svg", { class: "plot", role: "img", tabindex: 0, "aria-label": `${spec.title}. ${spec.rows.map((row) => `${row.group} ${row.name}: ${row.text}`).join(". ")}` });
  host.append(surface);
  let at = [];
  let focus = -1;

  function paint(width) {
    const told = width > 620;
    const longest = Math.max(...spec.rows.map((row) => row.name.length), ...spec.rows.map((row) => row.group.length));
    const [left, right] = [Math.min(width * 0.4, 18 + 7 * longest), width - (told ? 172 : 12)];
    const start = spec.from ?? -Infinity;
    const means = spec.rows.flatMap((row) => [row.mean, row.quoted]).filter((value) => value !== null && value !== undefined && value >= start);
    const [least, most] = range(spec.zero ? [...means, 0] : means);
    // A wide interval may leave the picture; the means may not.
    const reach = Math.max(most - least, 0.5);
    const ends = range(spec.rows.flatMap((row) => [row.low, row.high]));
    const low = Math.max(start, least - 0.5 * reach, ends ? Math.min(ends[0], least) : least) - 0.04 * reach;
    const high = Math.min(most + 0.5 * reach, ends ? Math.max(ends[1], most) : most) + 0.04 * reach;
    const X = (x) => left + ((Math.min(Math.max(x, low), high) - low) / (high - low)) * (right - left);
    const top = 12;
    const gaps = spec.rows.map((row, i) => (i > 0 && row.group !== spec.rows[i - 1].group ? 1 : 0));
    let y = top;
    const heads = spec.rows.some((row) => row.group);
    at = spec.rows.map((row, i) => {
      if (heads && (i === 0 || gaps[i])) y += step;
      y += step;
      return { row, y: y - step / 2 };
    });
    const bottom = y + 4;
    const unit = inLines(spec.unit, right);
    const height = bottom + 26 + 14 * unit.length;
    surface.setAttribute("viewBox", `0 0 ${width} ${height}`);
    surface.setAttribute("height", height);
    surface.replaceChildren();
    const scale = ticks(low, high, Math.max(2, Math.floor((right - left) / 80)));
    for (const x of scale.found) {
      surface.append(draw("line", { class: "grid", x1: X(x), x2: X(x), y1: top, y2: bottom }));
      surface.append(draw("text", { class: "tick", x: X(x), y: bottom + 16, "text-anchor": "middle" }, number(x, scale.decimals, spec.zero)));
    }
    if (spec.zero) surface.append(draw("line", { class: "zero", x1: X(0), x2: X(0), y1: top, y2: bottom }));
    unit.forEach((line, i) => surface.append(draw("text", { class: "label", x: right, y: bottom + 36 + 14 * i, "text-anchor": "end" }, line)));
    at.forEach(({ row, y }, i) => {
      if (heads && (i === 0 || gaps[i])) surface.append(draw("text", { class: "label strong", x: 2, y: y - step + 4 }, row.group));
      surface.append(draw("text", { class: row.strong ? "label strong" : "label", x: heads ? 14 : 2, y: y + 4 }, row.name));
      if (told) surface.append(draw("text", { class: row.strong ? "tick strong" : "tick", x: width - 4, y: y + 4, "text-anchor": "end" }, row.text));
      if (row.mean < start) {
        surface.append(draw("path", { class: "mark beyond", color: row.color, d: `M${left},${y} l7,-5 l0,10Z` }));
        return;
      }
      if (row.low !== null) surface.append(draw("line", { class: row.partly ? "whisker thick partly" : "whisker thick", color: row.color, x1: X(row.low), x2: X(row.high), y1: y, y2: y }));
      if (row.low !== null && row.low < low) surface.append(draw("path", { class: "onward", d: `M${left},${y} l6,-4 l0,8Z` }));
      if (row.high !== null && row.high > high) surface.append(draw("path", { class: "onward", d: `M${right},${y} l-6,-4 l0,8Z` }));
      if (row.quoted !== null && row.quoted !== undefined) {
        // Above ours, which would hide it.
        const [p, q] = [X(row.quoted), y - 6];
        surface.append(draw("path", { class: "quoted", d: `M${p - 4},${q} L${p},${q - 4} L${p + 4},${q} L${p},${q + 4}Z` }));
      }
      surface.append(draw("circle", { class: row.sure ? "mark point" : "mark point open", color: row.color, cx: X(row.mean), cy: y, r: 4.5 }));
    });
    surface.append(draw("rect", { class: "hover", x: 0, width, height: step, visibility: "hidden" }));
  }

  function point(index, x, y) {
    const bar = surface.querySelector(".hover");
    bar.setAttribute("y", at[index].y - step / 2);
    bar.setAttribute("visibility", "visible");
    const { row } = at[index];
    showTip([[row.group, row.name].filter(Boolean).join(" "), row.text, ...(row.notes ?? [])], x, y);
  }

  function leave() {
    surface.querySelector(".hover")?.setAttribute("visibility", "hidden");
    hideTip();
  }

  surface.addEventListener("pointermove", (event) => {
    const frame = surface.getBoundingClientRect();
    const y = ((event.clientY - frame.top) * surface.viewBox.baseVal.height) / frame.height;
    const index = at.findIndex((entry) => Math.abs(entry.y - y) <= step / 2);
    if (index < 0) leave();
    else point((focus = index), event.clientX, event.clientY);
  });
  surface.addEventListener("pointerleave", leave);
  surface.addEventListener("blur", leave);
  surface.addEventListener("keydown", (event) => {
    const move = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 }[event.key];
    if (!move) return;
    event.preventDefault();
    focus = Math.min(Math.max(0, focus + move), at.length - 1);
    const frame = surface.getBoundingClientRect();
    point(focus, frame.left + frame.width / 2, frame.top + at[focus].y);
  });
  responsive(host, paint);
  const legend = (spec.legend ?? []).map((entry) => {
    const key = draw("svg", { class: "key", width: 16, height: 12, "aria-hidden": "true" });
    key.append(entry.quoted ? draw("path", { class: "quoted", d: "M3,6 L8,1 L13,6 L8,11Z" }) : draw("circle", { class: entry.open ? "point open" : "point", color: entry.color, cx: 8, cy: 6, r: 4.5 }));
    return el("span", { class: "entry" }, key, entry.name);
  });
  if (legend.length) host.append(el("div", { class: "legend" }, ...legend));
  host.append(numbers(["", "", spec.unit], () => spec.rows.map((row) => [row.group, row.name, row.text])));
}

// A small map of numbers that are better or worse than zero.
function heatChart(host, spec) {
  const head = el("tr", {}, el("td", { class: "corner" }, `${spec.down} ↓`, el("br"), `${spec.across} →`), ...spec.columns.map((name) => el("th", { scope: "col" }, name)));
  const body = el("tbody");
  spec.values.forEach((row, i) => {
    const line = el("tr", {}, el("th", { scope: "row" }, spec.rows[i]));
    row.forEach((value, j) => {
      const cell = el("td", { class: `mark${value > 0 ? " right" : ""}${spec.marks[i][j] ? " starred" : ""}${spec.own && spec.own[0] === i && spec.own[1] === j ? " own" : ""}` }, value === null ? "" : `${number(value, 1, true)}${spec.marks[i][j]}`);
      cell.style.setProperty("--share", `${value === null ? 0 : Math.min(70, Math.round((70 * Math.abs(value)) / spec.limit))}%`);
      line.append(cell);
    });
    body.append(line);
  });
  host.append(el("div", { class: "scroll" }, el("table", { class: "matrix heat", "aria-label": `${spec.title}: ${spec.unit}` }, el("thead", {}, head), body)));
}

// A text in one line where there is room for it, otherwise in two.
function inLines(text, room) {
  if (text.length * 6.5 < room) return [text];
  const spaces = [...text.matchAll(/ /g)].map((found) => found.index);
  if (!spaces.length) return [text];
  const middle = spaces.reduce((a, b) => (Math.abs(b - text.length / 2) < Math.abs(a - text.length / 2) ? b : a));
  return [text.slice(0, middle), text.slice(middle + 1)];
}
