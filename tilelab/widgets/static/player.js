// Simulation player: a cursor over the modelled timeline; each step lights the Python line at work.
const ROLES = { copy: "load", store: "good", products: "compute", arithmetic: "other",
  "shared memory": "barrier", wait: "gap" };  // as in the static picture
const LANE_H = 30, LABEL_W = 130, CHART_W = 760, EDGE = 34; // room for half of the last number

// Spans of lines with a finding have a border and, the first of each track, an exclamation mark.
function chart(kernel, time, marked) {
  const height = kernel.lanes.length * LANE_H + 24, scale = CHART_W / Math.max(kernel.cycles, 1);
  const root = shape("svg", { width: LABEL_W + CHART_W + EDGE, height, role: "img",
    style: "min-width: 700px",
    viewBox: `0 0 ${LABEL_W + CHART_W + EDGE} ${height}`, "aria-label": kernel.headline });
  kernel.lanes.forEach((name, k) => {
    root.append(shape("text", { x: 4, y: k * LANE_H + 20, "font-size": 12,
      fill: "var(--tl-ink)" }, name));
    root.append(shape("rect", { x: LABEL_W, y: k * LANE_H + 3, width: CHART_W, height: LANE_H - 6,
      fill: "var(--tl-panel)" }));
  });
  const told = new Set();
  for (const [lane, what, start, end, label, stage, line, times] of kernel.spans) {
    const found = marked.get(line);
    const part = shape("rect", { x: LABEL_W + start * scale, y: lane * LANE_H + 3,
      width: Math.max((end - start) * scale, 0.6), height: LANE_H - 6,
      fill: `var(--tl-${ROLES[what] ?? "gap"})`, "data-finding": Boolean(found),
      stroke: `var(--tl-${found ? "bad-edge" : "muted"})`, "stroke-width": found ? 2 : 0.5 });
    part.append(shape("title", {}, `${label} (${what})${stage === null ? "" : `, stage ${stage}`}: ` +
      `cycle ${Math.round(start)} to ${Math.round(end)}${times > 1 ? ` (${times} events)` : ""}${found ? `; ${found.text}` : ""}`));
    root.append(part);
    if (!found || told.has(lane)) continue;
    told.add(lane);
    root.append(shape("text", { x: LABEL_W + start * scale + 2, y: lane * LANE_H + 20,
      "font-size": 14, "font-weight": 700, fill: "var(--tl-bad-edge)" }, "!"));
  }
  for (const tick of ticks(kernel.cycles)) {
    const place = LABEL_W + tick * scale, bottom = kernel.lanes.length * LANE_H;
    root.append(shape("line", { x1: place, x2: place, y1: 0, y2: bottom + 4,
      stroke: "var(--tl-muted)", "stroke-dasharray": "2 4", "stroke-width": 0.7 }),
    shape("text", { x: place, y: bottom + 18, "font-size": 11, "text-anchor": "middle",
      fill: "var(--tl-muted)" }, tick ? tick.toLocaleString() : "cycle 0"));
  }
  const x = LABEL_W + time * scale;
  root.append(shape("line", { x1: x, x2: x, y1: 0, y2: height - 20, stroke: "var(--tl-bad-edge)",
    "stroke-width": 2, class: "tl-cursor" }));
  return root;
}

// Round numbers, about eight of them, that the axis shows.
function ticks(cycles) {
  const least = Math.max(cycles, 1) / 8, power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= least);
  return Array.from({ length: Math.floor(cycles / step) + 1 }, (_, k) => k * step);
}

function at(kernel, time) {
  return kernel.spans.filter(([, , start, end]) => start <= time && time < end);
}

function draw(body, state, ask, memory) {
  memory.stop?.();
  const kernel = state.kernels[Math.min(memory.kernel ?? 0, state.kernels.length - 1)];
  const edges = [...new Set(kernel ? kernel.spans.map((s) => s[2]) : [])].sort((a, b) => a - b);
  memory.time = Math.min(memory.time ?? 0, kernel?.cycles ?? 0);
  const status = said(memory), frame = node("div", { class: "tl-picture" });
  const now = node("div", {}), source = node("div", { class: "tl-code", tabindex: 0,
    role: "region", "aria-label": "Python source" });
  const marked = new Map(state.findings.filter((f) => f.line).map((f) => [f.line, f]));
  for (const [number, text] of state.source) {
    const found = marked.get(number);
    source.append(node("span", { class: "tl-line", "data-line": number,
      "data-finding": Boolean(found) }, node("span", { class: "tl-number" }, String(number)),
    text, found ? node("strong", { class: "tl-problem" }, `  ← ${found.text}`) : null));
  }
  const slide = node("input", { type: "range", min: 0, max: Math.ceil(kernel?.cycles ?? 0), step: 1,
    value: memory.time, "data-key": "time", class: "tl-wide",
    oninput: (event) => show(Number(event.target.value)) });
  function show(time) {
    memory.time = time;
    if (!kernel) return;
    slide.value = time;
    frame.replaceChildren(chart(kernel, time, marked));
    const busy = at(kernel, time);
    const lines = new Set(busy.map((s) => s[6]).filter((n) => n !== null));
    for (const line of source.querySelectorAll(".tl-line"))
      line.toggleAttribute("data-lit", lines.has(Number(line.dataset.line)));
    const words = busy.map(([lane, what, , , label, stage]) => [kernel.lanes[lane], what, label,
      stage ?? "-"]);
    now.replaceChildren(table(`at cycle ${Math.round(time)} of ${Math.round(kernel.cycles)}`,
      ["track", "busy with", "what", "stage"], words));
  }
  const step = (way) => {
    const next = way > 0 ? edges.find((e) => e > memory.time)
      : [...edges].reverse().find((e) => e < memory.time);
    if (next === undefined) return false;
    show(next);
    memory.said = `cycle ${Math.round(next)}: ` +
      at(kernel, next).map((s) => `${kernel.lanes[s[0]]} ${s[1]}`).join(", ");
    status.textContent = memory.said;
    return true;
  };
  const play = button("play", () => {
    if (memory.timer) { memory.stop(); return; }
    memory.timer = setInterval(() => { if (!step(1)) memory.stop(); }, 250);
    play.textContent = "pause";
  }, "play");
  memory.stop = () => { clearInterval(memory.timer); memory.timer = null; play.textContent = "play"; };
  fill(body, {}, [node("h3", {}, state.title), node("p", {}, state.headline),
    node("div", { class: "tl-bar" },
      field("block", state.block, (text) => ask({ block: Number(text) }), "block",
        { type: "number", min: 0, max: Math.max(state.blocks - 1, 0) }),
      state.kernels.length > 1 ? choice("kernel", state.kernels.map((k, i) => [String(i), k.headline]),
        String(memory.kernel ?? 0), (k) => { memory.kernel = Number(k); memory.repaint(); }, "kernel")
        : null,
      button("previous step", () => step(-1), "previous"), play,
      button("next step", () => step(1), "next"), labelled("time", slide)),
    status, kernel ? frame : node("p", { class: "tl-muted" },
      "This block has no events: nothing was run, or their number went over the limit."),
    kernel ? legend(Object.entries(ROLES).map(([what, role]) => [`var(--tl-${role})`, what])) : null,
    node("div", { class: "tl-panes" }, now, source),
    state.findings.length ? node("ul", { class: "tl-findings" }, state.findings.map((f) =>
      node("li", {}, node("pre", { class: "tl-problem" }, f.where)))) : null,
    kernel ? folded("busy cycles as a table", () => table(kernel.headline, kernel.head,
      kernel.rows), memory, "rows") : null]);
  show(memory.time);
}
