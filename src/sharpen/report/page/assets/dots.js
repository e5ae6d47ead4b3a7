// Paired differences: a dot per pair, the mean with its interval, and a line where nothing changes.

function dotsChart(host, spec) {
  const radius = spec.rows.length > 4 ? 3.5 : 4.5;
  const tall = spec.rows.length > 4 ? 36 : spec.rows.length > 1 ? 76 : 180;
  const surface = draw("svg", { class: "plot", role: "img", tabindex: 0, "aria-label": `${spec.title}. ${spec.rows.map((row) => `${row.name}: ${row.text}`).join(". ")}` });
  host.append(surface);
  let dots = [];
  let focus = -1;

  function paint(width) {
    const every = spec.rows.flatMap((row) => [...row.values, row.low, row.high, -0.5, 0.5]);
    const [low, high] = spread({ air: 0.05 }, range(every));
    // A title that is too long for one line takes two.
    const tight = spec.rows.some((row) => (row.name.length + row.text.length + 4) * 6.5 > width - 28);
    const head = tight ? 36 : 20;
    const strip = head + tall;
    const top = 24;
    const height = top + spec.rows.length * strip + 34;
    const [left, right] = [14, width - 14];
    const X = (x) => left + ((x - low) / (high - low)) * (right - left);
    surface.setAttribute("viewBox", `0 0 ${width} ${height}`);
    surface.setAttribute("height", height);
    surface.replaceChildren();
    dots = [];
    const scale = ticks(low, high, Math.max(2, Math.floor((right - left) / 80)));
    const bottom = height - 34;
    // Lines pause where the rows have their titles.
    const upright = (name, x) => {
      for (let row = 0; row < spec.rows.length; row++) {
        surface.append(draw("line", { class: name, x1: X(x), x2: X(x), y1: top + row * strip + head, y2: top + (row + 1) * strip }));
      }
    };
    for (const x of scale.found) {
      upright("grid", x);
      surface.append(draw("text", { class: "tick", x: X(x), y: bottom + 16, "text-anchor": "middle" }, number(x, scale.decimals, true)));
    }
    upright("zero", 0);
    const worse = X(0) - left;
    if (worse > 60) surface.append(draw("text", { class: "label", x: X(0) - 8, y: 12, "text-anchor": "end" }, "← worse"));
    if (right - X(0) > 60) surface.append(draw("text", { class: "label", x: X(0) + 8, y: 12 }, "better →"));
    surface.append(draw("text", { class: "label", x: right, y: height - 4, "text-anchor": "end" }, spec.unit));
    spec.rows.forEach((row, index) => {
      const roof = top + index * strip;
      const title = draw("text", { class: "label strong halo", x: left, y: roof + 13 }, row.name);
      title.append(tight ? draw("tspan", { class: "plain", x: left, dy: 15 }, row.text) : draw("tspan", { class: "plain" }, `  ${row.text}`));
      const middle = roof + head + tall / 2;
      for (const [i, x, offset] of swarm(row.values.map(X), radius, tall / 2 - 4)) {
        const state = row.values[i] > 0 ? "gain" : row.values[i] < 0 ? "loss" : "tie";
        surface.append(draw("circle", { class: `mark dot ${state}`, cx: x, cy: middle + offset, r: radius }));
        dots.push({ x, y: middle + offset, text: row.notes[i], row });
      }
      if (row.low !== null) surface.append(draw("line", { class: "interval", x1: X(row.low), x2: X(row.high), y1: middle, y2: middle }));
      if (row.mean !== null) {
        const [x, r] = [X(row.mean), 7];
        surface.append(draw("path", { class: "mean", d: `M${x - r},${middle} L${x},${middle - r} L${x + r},${middle} L${x},${middle + r}Z` }));
      }
      surface.append(title);
    });
    surface.append(draw("circle", { class: "ring", r: radius + 3, visibility: "hidden" }));
  }

  function point(dot, x, y) {
    const ring = surface.querySelector(".ring");
    ring.setAttribute("cx", dot.x);
    ring.setAttribute("cy", dot.y);
    ring.setAttribute("visibility", "visible");
    showTip([dot.row.name, ...dot.text], x, y);
  }

  function leave() {
    surface.querySelector(".ring")?.setAttribute("visibility", "hidden");
    hideTip();
  }

  surface.addEventListener("pointermove", (event) => {
    const frame = surface.getBoundingClientRect();
    const scale = surface.viewBox.baseVal.width / frame.width;
    const [x, y] = [(event.clientX - frame.left) * scale, (event.clientY - frame.top) * scale];
    const near = dots.reduce((best, dot) => (Math.hypot(dot.x - x, dot.y - y) < Math.hypot(best.x - x, best.y - y) ? dot : best), dots[0]);
    if (near && Math.hypot(near.x - x, near.y - y) < 40) point(near, event.clientX, event.clientY);
    else leave();
  });
  surface.addEventListener("pointerleave", leave);
  surface.addEventListener("blur", leave);
  surface.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move || !dots.length) return;
    event.preventDefault();
    focus = Math.min(Math.max(0, focus + move), dots.length - 1);
    const frame = surface.getBoundingClientRect();
    point(dots[focus], frame.left + dots[focus].x, frame.top + dots[focus].y);
  });
  responsive(host, paint);
  host.append(numbers(["", spec.unit, "pair"], () => spec.rows.flatMap((row) => row.values.map((value, i) => [row.name, number(value, 2, true), row.notes[i].join(", ")]))));
}

// Dots that would cover each other move up or down, the nearest free place first: [index, x, offset].
function swarm(xs, radius, room) {
  const placed = [];
  const order = xs.map((_, i) => i).sort((a, b) => xs[a] - xs[b]);
  for (const i of order) {
    const near = placed.filter(([, x]) => Math.abs(x - xs[i]) < 2 * radius);
    const offsets = [0];
    for (let step = 2; step <= room; step += 2) offsets.push(step, -step);
    const free = (offset) => near.every(([, x, o]) => Math.hypot(x - xs[i], o - offset) >= 2 * radius - 0.5);
    placed.push([i, xs[i], offsets.find(free) ?? 0]);
  }
  return placed;
}
