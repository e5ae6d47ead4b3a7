// The graph itself: a dot per node, coloured by class, larger where the prediction is less sure.

function networkView(host, spec, table) {
  const n = spec.x.length;
  const surface = draw("svg", { class: "plot network", role: "img", tabindex: 0, "aria-label": spec.summary });
  const edges = draw("path", { class: "edges" });
  const layer = draw("g");
  const halo = draw("circle", { class: "ring", r: 12, visibility: "hidden" });
  surface.append(edges, layer, halo);
  edges.style.opacity = spec.source.length > 1000 ? 0.22 : 0.45;
  const radius = spec.unsure.map((value) => 2.6 + 5.2 * value);
  // The largest lie lowest, so that none is hidden by another.
  const order = Array.from({ length: n }, (_, i) => i).sort((a, b) => radius[b] - radius[a]);
  const marks = new Array(n);
  for (const i of order) {
    marks[i] = draw(spec.given && spec.given[i] ? "rect" : "circle", { class: "mark node" });
    layer.append(marks[i]);
  }
  let coloring = 0;
  let only = null;
  let picked = null;
  const view = { zoom: 1, x: 0.5, y: 0.5 };
  let size = { width: 0, height: 0 };
  let at = [];

  function paint(width) {
    size = { width, height: Math.min(Math.max(300, width * 0.62), 680) };
    surface.setAttribute("viewBox", `0 0 ${width} ${size.height}`);
    surface.setAttribute("height", size.height);
    place();
  }

  function place() {
    if (!size.width) return;
    const margin = 18; // the largest mark is not cut off
    const scale = Math.min((size.width - 2 * margin) / spec.width, (size.height - 2 * margin) / spec.height) * view.zoom;
    at = spec.x.map((x, i) => [size.width / 2 + (x - view.x * spec.width) * scale, size.height / 2 + (spec.y[i] - view.y * spec.height) * scale]);
    // As large as the room between nodes allows.
    const grow = Math.sqrt(view.zoom) * Math.min(2, Math.max(0.45, Math.sqrt((size.width * size.height) / n) / 20));
    edges.style.strokeWidth = `${Math.min(1.2, 0.5 * grow)}px`;
    for (let i = 0; i < n; i++) {
      const [x, y] = at[i];
      const r = radius[i] * grow;
      if (marks[i].tagName === "rect") {
        marks[i].setAttribute("x", (x - r).toFixed(1));
        marks[i].setAttribute("y", (y - r).toFixed(1));
        marks[i].setAttribute("width", (2 * r).toFixed(1));
        marks[i].setAttribute("height", (2 * r).toFixed(1));
      } else {
        marks[i].setAttribute("cx", x.toFixed(1));
        marks[i].setAttribute("cy", y.toFixed(1));
        marks[i].setAttribute("r", r.toFixed(1));
      }
    }
    let path = "";
    for (let k = 0; k < spec.source.length; k++) {
      const [a, b] = [at[spec.source[k]], at[spec.target[k]]];
      path += `M${a[0].toFixed(1)},${a[1].toFixed(1)}L${b[0].toFixed(1)},${b[1].toFixed(1)}`;
    }
    edges.setAttribute("d", path);
    ring();
  }

  function ring() {
    halo.setAttribute("visibility", picked === null ? "hidden" : "visible");
    if (picked === null) return;
    halo.setAttribute("cx", at[picked][0]);
    halo.setAttribute("cy", at[picked][1]);
  }

  function colour() {
    const { values, legend: entries } = spec.colorings[coloring];
    for (let i = 0; i < n; i++) {
      const entry = entries[values[i]] ?? entries[entries.length - 1];
      marks[i].style.setProperty("--c", `var(--${entry.color})`);
      marks[i].classList.toggle("dim", only !== null && values[i] !== only);
    }
    legend.replaceChildren(
      ...entries.map((entry, index) => {
        const button = el("button", { type: "button", class: "entry", "aria-pressed": String(only === index), title: "Show only these" }, el("span", { class: "swatch", color: entry.color }), entry.name);
        button.addEventListener("click", () => {
          only = only === index ? null : index;
          colour();
        });
        return button;
      }),
    );
  }

  function nearest(event) {
    const frame = surface.getBoundingClientRect();
    const scale = size.width / frame.width;
    const [x, y] = [(event.clientX - frame.left) * scale, (event.clientY - frame.top) * scale];
    let best = null;
    for (let i = 0; i < n; i++) {
      const far = Math.hypot(at[i][0] - x, at[i][1] - y);
      if (far < 12 && (best === null || far < best.far)) best = { far, i };
    }
    return best?.i ?? null;
  }

  function tell(i, x, y) {
    showTip(
      table.columns.filter((column) => textOf(column, i) !== "").map((column) => `${column.name}: ${textOf(column, i)}`),
      x,
      y,
    );
  }

  let drag = null;
  surface.addEventListener("pointerdown", (event) => {
    if (view.zoom > 1) {
      drag = { x: event.clientX, y: event.clientY };
      surface.setPointerCapture(event.pointerId);
    }
  });
  surface.addEventListener("pointerup", () => (drag = null));
  surface.addEventListener("pointermove", (event) => {
    if (drag) {
      move(drag.x - event.clientX, drag.y - event.clientY);
      drag = { x: event.clientX, y: event.clientY };
      return;
    }
    const i = nearest(event);
    if (i === null) hideTip();
    else tell(i, event.clientX, event.clientY);
  });
  surface.addEventListener("pointerleave", hideTip);
  surface.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-60, 0], ArrowRight: [60, 0], ArrowUp: [0, -60], ArrowDown: [0, 60] }[event.key];
    if (step && view.zoom > 1) move(...step);
    else if (event.key === "+" || event.key === "=") zoom(1.5);
    else if (event.key === "-") zoom(1 / 1.5);
    else return;
    event.preventDefault();
  });

  function move(dx, dy) {
    const scale = Math.min(size.width / spec.width, size.height / spec.height) * view.zoom;
    view.x = Math.min(1, Math.max(0, view.x + dx / scale / spec.width));
    view.y = Math.min(1, Math.max(0, view.y + dy / scale / spec.height));
    place();
  }

  function zoom(factor) {
    view.zoom = Math.min(20, Math.max(1, view.zoom * factor));
    if (view.zoom === 1) view.x = view.y = 0.5;
    surface.classList.toggle("zoomed", view.zoom > 1);
    place();
  }

  const legend = el("div", { class: "legend classes" });
  const sizes = el(
    "span",
    { class: "entry sizes" },
    draw("svg", { class: "key", width: 40, height: 16, "aria-hidden": "true" }, draw("circle", { cx: 6, cy: 8, r: 2, class: "point" }), draw("circle", { cx: 20, cy: 8, r: 4, class: "point" }), draw("circle", { cx: 33, cy: 8, r: 6.5, class: "point" })),
    "larger: less sure",
  );
  const square = spec.given ? el("span", { class: "entry" }, draw("svg", { class: "key", width: 14, height: 14, "aria-hidden": "true" }, draw("rect", { x: 2, y: 2, width: 10, height: 10, class: "point" })), "square: label was given") : null;
  const tool = (label, sign, act) => el("button", { type: "button", "aria-label": label, title: label, onclick: act }, sign);
  const tools = el("div", { class: "tools" }, tool("Zoom in", "+", () => zoom(1.5)), tool("Zoom out", "−", () => zoom(1 / 1.5)), tool("Whole graph", "⤢", () => zoom(0)));
  const paintings = spec.colorings.length > 1 ? choices("Colour", spec.colorings.map((c) => c.name), (index) => ((coloring = index), (only = null), colour())) : null;
  host.append(el("div", { class: "bar" }, paintings, tools), legend, el("div", { class: "legend" }, sizes, square), surface);
  colour();
  responsive(host, paint);
  return (row) => {
    picked = row;
    if (view.zoom > 1) {
      view.x = spec.x[row] / spec.width;
      view.y = spec.y[row] / spec.height;
    }
    place();
    surface.scrollIntoView({ block: "nearest" });
    // Scrolling hides the tooltip, in the frame after this one.
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        const frame = surface.getBoundingClientRect();
        tell(row, frame.left + at[row][0], frame.top + at[row][1]);
      }),
    );
  };
}
