// Layout explorer: maps of fragments and shared tiles, element <-> thread, register, bank.
const SIDE = 528, THIN = 96, LARGEST = 22;

// Pixels across and down of an element: squares, unless the map would be too thin to point at.
function cellOf(pane) {
  const side = (room, count) => Math.max(1, Math.min(LARGEST, Math.floor(room / count)));
  const square = side(SIDE, Math.max(pane.rows, pane.cols));
  return [Math.max(square, side(THIN, pane.cols)), Math.max(square, side(THIN, pane.rows))];
}

const LINED = 2; // the least pixels of an element between lines
function lined(pane) {
  return pane.kind === "fragment" && Math.min(...cellOf(pane)) >= LINED;
}

function placeOf(pane, flat) {
  const indices = [];
  for (let k = pane.shape.length - 1; k >= 0; k--) {
    indices.unshift(flat % pane.shape[k]);
    flat = Math.floor(flat / pane.shape[k]);
  }
  return indices;
}

function ownersOf(pane, flat) {
  return pane.threads.slice(flat * pane.replication, (flat + 1) * pane.replication);
}

function describe(pane, flat) {
  const place = `${pane.name}[${placeOf(pane, flat).join(", ")}]`;
  if (pane.kind === "shared") {
    const byte = Math.floor(pane.offsets[flat] * pane.element_bits / 8);
    return `${place}: byte ${byte}, bank ${Math.floor(byte / 4) % 32}, 16-byte chunk ` +
      `${Math.floor(byte / 16)}`;
  }
  const words = ownersOf(pane, flat)
    .map((t) => `thread ${t} (warp ${Math.floor(t / 32)}, lane ${t % 32})`);
  const many = words.length > 4 ? [...words.slice(0, 4), `and ${words.length - 4} more`] : words;
  return `${place}: ${many.join(", ")}, register ${pane.registers[flat]}`;
}

// The colour class of an element: its lane, or its bank.
function toneOf(pane, flat) {
  if (pane.kind === "shared")
    return Math.floor(pane.offsets[flat] * pane.element_bits / 32) % 32;
  return pane.threads[flat * pane.replication] % 32;
}

function chosen(pane, flat, pick) {
  if (pick === null || pick === undefined || pick.value === null) return true;
  if (pick.by === "bank") return pane.kind !== "shared" || toneOf(pane, flat) === pick.value;
  if (pane.kind === "shared") return true;
  return ownersOf(pane, flat)
    .some((t) => (pick.by === "warp" ? Math.floor(t / 32) : t) === pick.value);
}

function cellLabel(pane, flat) {
  if (pane.kind === "shared") return `b${toneOf(pane, flat)}`;
  return `T${pane.threads[flat * pane.replication]}:R${pane.registers[flat]}`;
}

function rgb(text) {
  return [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16));
}

function paintMap(canvas, pane, state, memory) {
  const { rows, cols } = pane, size = pane.size;
  const image = new ImageData(cols, rows);
  const tones = state.colours.map(rgb);
  for (let flat = 0; flat < size; flat++) {
    const on = chosen(pane, flat, memory.pick);
    const tone = on ? tones[toneOf(pane, flat)] : [128, 134, 142];
    image.data.set([...tone, on ? 255 : 60], flat * 4);
  }
  const [wide, high] = cellOf(pane), small = document.createElement("canvas");
  small.width = cols;
  small.height = rows;
  small.getContext("2d").putImageData(image, 0, 0);
  const pen = canvas.getContext("2d");
  pen.imageSmoothingEnabled = false;
  pen.clearRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(small, 0, 0, canvas.width, canvas.height);
  if (lined(pane)) warpLines(pen, pane, wide, high);
  const focus = memory.focus?.[pane.slot];
  if (focus === undefined) return;
  const mine = pane.kind === "fragment" ? ownersOf(pane, focus)[0] : toneOf(pane, focus);
  pen.fillStyle = "#14171c";
  for (let flat = 0; flat < size; flat++) {
    const same = pane.kind === "fragment" ? ownersOf(pane, flat).includes(mine) : false;
    if (same) pen.fillRect((flat % cols) * wide, Math.floor(flat / cols) * high, wide, high);
  }
  pen.strokeStyle = "#b3261e";
  pen.lineWidth = 2;
  pen.strokeRect((focus % cols) * wide - 1, Math.floor(focus / cols) * high - 1, wide + 2,
    high + 2);
}

function warpLines(pen, pane, wide, high) {
  const warp = (flat) => Math.floor(pane.threads[flat * pane.replication] / 32);
  pen.strokeStyle = "#14171c";
  pen.lineWidth = Math.min(wide, high) > 2 ? 1.5 : 1;
  pen.beginPath();
  for (let flat = 0; flat < pane.size; flat++) {
    const row = Math.floor(flat / pane.cols), col = flat % pane.cols;
    if (col + 1 < pane.cols && flat + 1 < pane.size && warp(flat) !== warp(flat + 1)) {
      pen.moveTo((col + 1) * wide, row * high);
      pen.lineTo((col + 1) * wide, (row + 1) * high);
    }
    if (flat + pane.cols < pane.size && warp(flat) !== warp(flat + pane.cols)) {
      pen.moveTo(col * wide, (row + 1) * high);
      pen.lineTo((col + 1) * wide, (row + 1) * high);
    }
  }
  pen.stroke();
}

// The labelled neighbourhood of the focused element: a magnifier and a table in one.
function nearby(pane, state, memory) {
  const focus = memory.focus?.[pane.slot] ?? 0, high = 8, wide = 8;
  const row = Math.floor(focus / pane.cols), col = focus % pane.cols;
  const top = Math.max(0, Math.min(row - 3, pane.rows - high));
  const left = Math.max(0, Math.min(col - 3, pane.cols - wide));
  const span = (start, count, end) =>
    Array.from({ length: Math.min(count, end - start) }, (_, k) => start + k);
  const columns = span(left, wide, pane.cols);
  return node("table", { class: "tl-near" },
    node("caption", {}, pane.kind === "shared" ? "around the focus: bank (b) of each element"
      : "around the focus: thread (T) and register (R) of each element"),
    node("thead", {}, node("tr", {}, node("th", { scope: "col" }, "row"),
      columns.map((c) => node("th", { scope: "col" }, String(c))))),
    node("tbody", {}, span(top, high, pane.rows).map((r) => node("tr", {},
      node("th", { scope: "row" }, String(r)),
      columns.map((c) => {
        const flat = r * pane.cols + c;
        if (flat >= pane.size) return node("td", {}, "");
        const on = chosen(pane, flat, memory.pick);
        return node("td", { "data-here": flat === focus,
          style: on ? `background:${state.colours[toneOf(pane, flat)]}`
            : "background:var(--tl-gap);color:var(--tl-ink)" }, cellLabel(pane, flat));
      })))));
}

function twin(pane, memory) {
  const rows = [];
  for (let flat = 0; flat < pane.size && rows.length < 512; flat++) {
    if (!chosen(pane, flat, memory.pick)) continue;
    const place = placeOf(pane, flat).join(", ");
    if (pane.kind === "shared") {
      const byte = Math.floor(pane.offsets[flat] * pane.element_bits / 8);
      rows.push([place, byte, Math.floor(byte / 4) % 32]);
    } else rows.push([place, ownersOf(pane, flat).join(" "), pane.registers[flat]]);
  }
  const head = pane.kind === "shared" ? ["element", "byte", "bank"] : ["element", "threads", "register"];
  const more = rows.length === 512 ? " (the first 512; isolate a thread or warp for others)" : "";
  return node("div", { class: "tl-scroll", tabindex: 0, role: "region",
    "aria-label": `table of ${pane.name}` }, table(`${pane.name}${more}`, head, rows));
}

// What the colours mean, with their numbers.
function colourStrip(pane, state) {
  const what = pane.kind === "shared" ? "bank of each element" : "lane of each element";
  const more = lined(pane) ? "; dark lines part the warps" : "";
  return node("p", { class: "tl-strip" }, node("span", { "aria-hidden": "true" },
    state.colours.map((paint, k) => node("i", { style: `background:${paint}` }, String(k)))),
  `${what}${more}`);
}

function drawPane(pane, state, ask, memory, refresh) {
  const [wide, high] = cellOf(pane);
  const canvas = node("canvas", {
    width: pane.cols * wide, height: pane.rows * high, tabindex: 0, role: "application",
    "data-key": `map-${pane.slot}`, "data-buffer": pane.name,
    "aria-label": `map of ${pane.name}, ${pane.rows} rows by ${pane.cols} columns; ` +
      "arrow keys move the focus, Enter isolates the thread or bank",
  });
  const near = node("div", { class: "tl-aside", tabindex: 0, role: "region",
    "aria-label": `around the focus in ${pane.name}` });
  const update = () => {
    paintMap(canvas, pane, state, memory);
    near.replaceChildren(nearby(pane, state, memory));
  };
  const look = (flat) => {
    if (flat < 0 || flat >= pane.size) return;
    memory.focus = { ...memory.focus, [pane.slot]: flat };
    const others = state.panes.filter((p) => p !== pane && String(p.shape) === String(pane.shape));
    for (const other of others) memory.focus[other.slot] = flat;
    memory.said = [pane, ...others].map((p) => describe(p, flat)).join("; ");
    refresh();
  };
  canvas.addEventListener("mousemove", (event) => {
    // From inside the border, which is wider than an element of a large map.
    const col = Math.floor(event.offsetX / canvas.clientWidth * pane.cols);
    const row = Math.floor(event.offsetY / canvas.clientHeight * pane.rows);
    look(Math.min(Math.max(row, 0), pane.rows - 1) * pane.cols
      + Math.min(Math.max(col, 0), pane.cols - 1));
  });
  const isolate = () => {
    const flat = memory.focus?.[pane.slot] ?? 0;
    const value = pane.kind === "shared" ? toneOf(pane, flat) : ownersOf(pane, flat)[0];
    memory.pick = { by: pane.kind === "shared" ? "bank" : "thread", value };
    memory.repaint();
  };
  canvas.addEventListener("click", isolate);
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -pane.cols, ArrowDown: pane.cols };
    if (event.key in step) look((memory.focus?.[pane.slot] ?? 0) + step[event.key]);
    else if (event.key === "Enter") isolate();
    else if (event.key === "Escape") { memory.pick = null; memory.repaint(); }
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  update();
  const part = node("div", { class: "tl-pane", "data-pane": pane.name },
    node("h3", {}, pane.summary),
    pane.reason ? node("p", { class: "tl-muted" }, `Why: ${pane.reason}`) : null,
    node("div", { class: "tl-field" }, field("try another layout", pane.expression,
      (text) => ask({ edit: pane.slot, expression: text }), `expression-${pane.slot}`,
      { class: "tl-wide", placeholder: "for example Fragment.blocked(shape, threads, 4)" })),
    colourStrip(pane, state),
    node("div", { class: "tl-map" }, canvas, near), folded("as a table", () => twin(pane, memory), memory, `twin-${pane.slot}`));
  return [part, update];
}

function picker(state, memory) {
  const pick = memory.pick ?? { by: "thread", value: null };
  const set = (by, text) => {
    memory.pick = { by, value: text === "" ? null : Number(text) };
    memory.repaint();
  };
  const value = pick.value === null ? "" : pick.value;
  return [
    choice("isolate by", [["thread", "thread"], ["warp", "warp"], ["bank", "bank"]], pick.by,
      (by) => set(by, value), "pick-by"),
    field("number", value, (text) => set(pick.by, text), "pick-value",
      { type: "number", min: 0, size: 6 }),
    button("show all", () => { memory.pick = null; memory.repaint(); }, "pick-none"),
  ];
}

function accessPart(state, ask, memory) {
  const access = state.access, tiles = [access, ...access.others];
  const verdicts = tiles.map((tile) => node("p", { class: "tl-verdict", "data-good": String(tile.good) },
    tiles.length > 1 ? `${tile.name}: ${tile.verdict}` : tile.verdict));
  return node("div", { class: "tl-access" },
    node("div", { class: "tl-bar" },
      choice("one warp reads", Object.entries(state.patterns), access.pattern,
        (pattern) => ask({ access: { pattern, vector: access.vector } }), "pattern"),
      choice("elements a lane", access.vectors.map((v) => [String(v), String(v)]),
        String(access.vector),
        (v) => ask({ access: { pattern: access.pattern, vector: Number(v) } }), "vector")),
    ...verdicts,
    ...tiles.map((tile, k) => tile.svg ? picture(tile.svg, `access-${k}`) : null),
    folded("the access as text", () => node("pre", { class: "tl-scroll", tabindex: 0 },
      tiles.map((tile) => tile.text).join("\n")), memory, "access-text"));
}

const HINT = "Point at an element, or go to the map by Tab and use the arrow keys. " +
  "A click or Enter isolates what holds it.";

function draw(body, state, ask, memory) {
  memory.said ??= HINT;
  const status = said(memory), updates = [];
  const refresh = () => {
    status.textContent = memory.said ?? "";
    for (const update of updates) update();
  };
  const panes = state.panes.map((pane) => {
    const [part, update] = drawPane(pane, state, ask, memory, refresh);
    updates.push(update);
    return part;
  });
  const names = state.names.map((name, k) => [String(k), name]);
  const beside = [["-1", "nothing"], ...names];
  body.append(
    node("div", { class: "tl-bar" },
      choice("buffer", names, String(state.shown[0]), (k) => ask({ show: 0, buffer: Number(k) }),
        "buffer-0"),
      choice("compare with", beside, String(state.shown[1] ?? -1),
        (k) => ask({ show: 1, buffer: Number(k) }), "buffer-1"),
      ...picker(state, memory)),
    status,
    node("div", { class: "tl-panes" }, ...panes));
  if (state.access) body.append(accessPart(state, ask, memory));
}
