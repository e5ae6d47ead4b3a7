// Curves over one axis: accuracy against λ, training, reliability, coverage.

function linesChart(host, spec) {
  const text = (value, axis) => number(value, axis.decimals ?? 2) + (axis.unit ? ` ${axis.unit}` : "");
  const points = spec.series.flatMap((s) => s.x.map((x, i) => ({ s, i, x, y: s.y[i] }))).filter((p) => p.y !== null);
  const steps = [...new Set(points.map((p) => p.x))].sort((a, b) => a - b);
  const surface = draw("svg", { class: "plot", role: "img", tabindex: 0, "aria-label": `${spec.title}. ${spec.summary ?? ""} Arrow keys read values.` });
  host.append(surface, el("div", { class: "legend" }, ...spec.series.filter((s) => s.name).map(legendEntry)));
  let place = null;
  let focus = -1;

  function paint(width) {
    const height = spec.height ?? 270;
    const [xLow, xHigh] = spread(spec.x, range(points.map((p) => p.x)));
    const tall = spec.series.flatMap((s) => [...s.y, ...(s.low ?? []), ...(s.high ?? [])]);
    const [yLow, yHigh] = spread(spec.y, range(tall));
    const yTicks = named(spec.y) ?? marked(ticks(yLow, yHigh, 5));
    const wide = Math.max(...yTicks.map(([, text]) => text.length));
    const box = { left: 14 + 7 * wide, right: width - 14, top: 26, bottom: height - 40 };
    const [bentX, bentY] = [bend(spec.x), bend(spec.y)];
    const X = (x) => box.left + ((bentX(x) - bentX(xLow)) / (bentX(xHigh) - bentX(xLow))) * (box.right - box.left);
    const Y = (y) => box.bottom - ((bentY(y) - bentY(yLow)) / (bentY(yHigh) - bentY(yLow))) * (box.bottom - box.top);
    place = { X, Y, box };
    surface.setAttribute("viewBox", `0 0 ${width} ${height}`);
    surface.setAttribute("height", height);
    surface.replaceChildren();
    for (const [y, label] of apart(yTicks, Y, 12)) {
      surface.append(draw("line", { class: "grid", x1: box.left, x2: box.right, y1: Y(y), y2: Y(y) }));
      surface.append(draw("text", { class: "tick", x: box.left - 7, y: Y(y) + 4, "text-anchor": "end" }, label));
    }
    const xTicks = named(spec.x) ?? marked(ticks(xLow, xHigh, Math.max(2, Math.floor((box.right - box.left) / 80))));
    for (const [x, label] of xTicks) {
      surface.append(draw("line", { class: "axis", x1: X(x), x2: X(x), y1: box.bottom, y2: box.bottom + 4 }));
      surface.append(draw("text", { class: "tick", x: X(x), y: box.bottom + 17, "text-anchor": "middle" }, label));
    }
    surface.append(draw("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
    surface.append(draw("text", { class: "label", x: 2, y: 14 }, spec.y.label));
    surface.append(draw("text", { class: "label", x: box.right, y: height - 6, "text-anchor": "end" }, spec.x.label));
    if (spec.zero && yLow < 0 && yHigh > 0) surface.append(draw("line", { class: "zero", x1: box.left, x2: box.right, y1: Y(0), y2: Y(0) }));
    if (spec.upright && xLow < 0 && xHigh > 0) surface.append(draw("line", { class: "zero", x1: X(0), x2: X(0), y1: box.top, y2: box.bottom }));
    if (spec.diagonal) {
      const [low, high] = [Math.max(xLow, yLow), Math.min(xHigh, yHigh)];
      surface.append(draw("line", { class: "diagonal", x1: X(low), y1: Y(low), x2: X(high), y2: Y(high) }));
    }
    // What an axis leaves out must not be drawn beside it.
    const room = 2 + Math.max(4.5, ...spec.series.flatMap((s) => s.size ?? []));
    const window = draw("svg", { x: box.left - room, y: box.top - room, width: box.right - box.left + 2 * room, height: box.bottom - box.top + room, class: "window" });
    const inner = draw("g", { transform: `translate(${room - box.left}, ${room - box.top})` });
    window.append(inner);
    surface.append(window);
    for (const s of spec.series) paintSeries(inner, s, X, Y);
    for (const mark of spec.marks ?? []) {
      const late = X(mark.x) > (box.left + box.right) / 2;
      surface.append(draw("line", { class: "chosen", x1: X(mark.x), x2: X(mark.x), y1: box.top, y2: box.bottom }));
      surface.append(draw("text", { class: "label strong halo", x: X(mark.x) + (late ? -6 : 6), y: box.bottom - 8, "text-anchor": late ? "end" : "start" }, mark.label));
    }
    surface.append(draw("g", { class: "cross" }));
  }

  function paintSeries(inner, s, X, Y) {
    const known = s.x.map((_, i) => i).filter((i) => s.y[i] !== null);
    if (s.low && !s.points) {
      const known = s.x.map((_, i) => i).filter((i) => s.low[i] !== null);
      const up = known.map((i) => `${X(s.x[i])},${Y(s.high[i])}`);
      const down = known.map((i) => `${X(s.x[i])},${Y(s.low[i])}`).reverse();
      inner.append(draw("polygon", { class: s.pale ? "band pale" : "band", color: s.color, points: [...up, ...down].join(" ") }));
    }
    if (s.line !== false) {
      const path = known.map((i) => `${X(s.x[i]).toFixed(1)},${Y(s.y[i]).toFixed(1)}`).join(" ");
      inner.append(draw("polyline", { class: `mark ${strokeOf(s)}`, color: s.color, points: path }));
    }
    if (!s.points) return;
    for (const i of known) {
      if (s.low && s.low[i] !== null) {
        inner.append(draw("line", { class: "whisker", color: s.color, x1: X(s.x[i]), x2: X(s.x[i]), y1: Y(s.low[i]), y2: Y(s.high[i]) }));
      }
      inner.append(draw("circle", { class: s.filled && !s.filled[i] ? "mark point open" : "mark point", color: s.color, cx: X(s.x[i]), cy: Y(s.y[i]), r: s.size ? s.size[i] : 4.5 }));
    }
  }

  function point(at, x, y) {
    const cross = surface.querySelector(".cross");
    cross.replaceChildren(draw("line", { class: "chosen", x1: place.X(at), x2: place.X(at), y1: place.box.top, y2: place.box.bottom }));
    const lines = [`${spec.x.name ?? spec.x.label} ${text(at, spec.x)}`];
    for (const p of points.filter((p) => p.x === at)) {
      if (place.Y(p.y) <= place.box.bottom) cross.append(draw("circle", { class: "point", color: p.s.color, cx: place.X(p.x), cy: place.Y(p.y), r: 4 }));
      const extent = p.s.low && p.s.low[p.i] !== null ? ` (${number(p.s.low[p.i], spec.y.decimals ?? 2)} to ${number(p.s.high[p.i], spec.y.decimals ?? 2)})` : "";
      const note = p.s.notes ? `, ${p.s.notes[p.i]}` : "";
      lines.push(`${p.s.name}: ${text(p.y, spec.y)}${extent}${note}`);
    }
    showTip(lines, x, y);
  }

  function leave() {
    surface.querySelector(".cross")?.replaceChildren();
    hideTip();
  }

  surface.addEventListener("pointermove", (event) => {
    const frame = surface.getBoundingClientRect();
    const x = ((event.clientX - frame.left) * surface.viewBox.baseVal.width) / frame.width;
    const y = ((event.clientY - frame.top) * surface.viewBox.baseVal.height) / frame.height;
    let best = null;
    for (const p of points) {
      // Points that stand alone are found by both coordinates, curves by the first.
      const far = spec.hover === "point" ? Math.hypot(place.X(p.x) - x, place.Y(p.y) - y) : Math.abs(place.X(p.x) - x);
      if (best === null || far < best.far) best = { far, at: p.x };
    }
    focus = steps.indexOf(best.at);
    point(best.at, event.clientX, event.clientY);
  });
  surface.addEventListener("pointerleave", leave);
  surface.addEventListener("blur", leave);
  surface.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move) return;
    event.preventDefault();
    focus = Math.min(Math.max(0, focus + move), steps.length - 1);
    const frame = surface.getBoundingClientRect();
    point(steps[focus], frame.left + place.X(steps[focus]), frame.top + place.box.top + 30);
  });
  responsive(surface.parentElement, paint);
  const shown = spec.series.filter((s) => s.name);
  host.append(
    numbers([spec.x.label, ...shown.map((s) => s.name)], () =>
      steps.map((x) => [
        text(x, spec.x),
        ...shown.map((s) => {
          const i = s.x.indexOf(x);
          return i < 0 || s.y[i] === null ? "" : number(s.y[i], spec.y.decimals ?? 2);
        }),
      ]),
    ),
  );
}

// What an axis spans: what it is told to, else the values and a little air.
function spread(axis, found) {
  let [low, high] = found ?? [0, 1];
  const air = (high - low || Math.abs(high) || 1) * (axis.air ?? 0.06);
  low = axis.min ?? low - air;
  high = axis.max ?? Math.min(high + air, axis.most ?? Infinity);
  return high > low ? [low, high] : [low - 1, low + 1];
}

// Ticks as [value, text]: those that an axis names, and those that were found for it.
const named = (axis) => axis.ticks ?? null;
const marked = (scale) => scale.found.map((t) => [t, number(t, scale.decimals)]);

// Ticks that leave each other room, those nearest to zero first.
function apart(found, place, room) {
  const kept = [];
  for (const tick of [...found].sort(([a], [b]) => Math.abs(a) - Math.abs(b))) {
    if (kept.every(([other]) => Math.abs(place(other) - place(tick[0])) >= room)) kept.push(tick);
  }
  return kept;
}

// A scale that is linear up to a value and logarithmic beyond it, where the axis asks for one.
function bend(axis) {
  const linear = axis.symlog;
  if (!linear) return (value) => value;
  return (value) => (Math.abs(value) <= linear ? value : Math.sign(value) * linear * (1 + 0.9 * Math.log10(Math.abs(value) / linear)));
}
