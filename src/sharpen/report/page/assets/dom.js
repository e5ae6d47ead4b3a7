// Building blocks: elements, numbers as text, the one tooltip.
// Text from the user only ever becomes a text node or an attribute that is not code; nothing here parses markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "color") node.style.setProperty("--c", `var(--${value})`);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// A number with so many decimals, thousands apart, and a minus sign that is one.
function number(value, decimals = 2, signed = false) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const text = Math.abs(value).toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  const zero = !/[1-9]/.test(text);
  return (value < 0 && !zero ? "−" : signed && !zero ? "+" : "") + text;
}

const tip = el("div", { id: "tip", role: "status", "aria-live": "polite", hidden: true });

function showTip(lines, x, y) {
  tip.replaceChildren(...lines.map((line) => el("div", {}, line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = Math.min(Math.max(8, x + 14), document.documentElement.clientWidth - box.width - 8);
  const above = y - box.height - 12;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${above < 8 ? y + 18 : above}px`;
}

function hideTip() {
  tip.hidden = true;
}

// Ticks at 1, 2 or 5 times a power of ten, about so many.
function ticks(low, high, wanted) {
  const raw = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step);
  return { found, decimals };
}

function range(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null || value === undefined) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low <= high ? [low, high] : null;
}

// Calls paint(width) now and whenever the width of the host changes.
function responsive(host, paint) {
  let last = 0;
  const look = (width) => {
    if (width > 0 && Math.abs(width - last) >= 1) paint((last = width));
  };
  new ResizeObserver((entries) => look(entries[0].contentRect.width)).observe(host);
  look(host.clientWidth);
}

// The numbers of a chart as a table, made when somebody asks for them.
function numbers(heads, rows) {
  const details = el("details", { class: "numbers" }, el("summary", {}, "Numbers"));
  details.addEventListener("toggle", () => {
    if (details.childElementCount > 1) return;
    const cells = (row, tag) => el("tr", {}, ...row.map((cell) => el(tag, tag === "th" ? { scope: "col" } : {}, cell)));
    const body = el("tbody", {}, ...rows().map((row) => cells(row, "td")));
    details.append(el("div", { class: "scroll" }, el("table", {}, el("thead", {}, cells(heads, "th")), body)));
  });
  return details;
}

// A row of choices of which one is on; onchoose(index) is called for every other.
function choices(label, names, onchoose, chosen = 0) {
  const group = el("div", { class: "choices", role: "group", "aria-label": label });
  names.forEach((name, index) => {
    const button = el("button", { type: "button", "aria-pressed": String(index === chosen) }, name);
    button.addEventListener("click", () => {
      for (const other of group.children) other.setAttribute("aria-pressed", String(other === button));
      onchoose(index);
    });
    group.append(button);
  });
  return group;
}

// Lines differ in more than colour.
function strokeOf(entry) {
  return `line ${entry.dash === true ? "dash" : entry.dash || ""}`.trim();
}

function legendEntry(entry) {
  const key = draw("svg", { class: "key", width: 26, height: 12, "aria-hidden": "true" });
  if (entry.line !== false) {
    key.append(draw("line", { x1: 1, x2: 25, y1: 6, y2: 6, class: strokeOf(entry), color: entry.color }));
  }
  if (entry.line === false || entry.points) key.append(draw("circle", { cx: 13, cy: 6, r: 4, class: "point", color: entry.color }));
  return el("span", { class: "entry" }, key, entry.name);
}
