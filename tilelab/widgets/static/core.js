// Pieces that every widget of tilelab shares: elements, controls, tables, the theme, the mount.
// A widget's module is this file followed by its own, which defines `draw`; nothing is loaded
// from anywhere else, so it works offline.
const SVG_SPACE = "http://www.w3.org/2000/svg";
let fresh = 0;
let painting = false;
const stamp = Math.random().toString(36).slice(2, 8); // ids stay apart between widgets

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const FOCUSABLE = ["input", "select", "button", "canvas", "summary"];

function node(tag, attributes = {}, ...children) {
  const element = fill(document.createElement(tag), attributes, children);
  // JupyterLab takes arrow keys for itself, unless the focused element asks to keep them.
  if (FOCUSABLE.includes(tag) || "tabindex" in attributes)
    element.setAttribute("data-lm-suppress-shortcuts", "true");
  return element;
}

function shape(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG_SPACE, tag), attributes, children);
}

function table(caption, head, rows, attributes = {}) {
  return node("table", attributes,
    node("caption", {}, caption),
    node("thead", {}, node("tr", {}, head.map((text) => node("th", { scope: "col" }, text)))),
    node("tbody", {}, rows.map((row) => node("tr", {},
      row.map((cell, k) => k ? node("td", {}, String(cell))
        : node("th", { scope: "row" }, String(cell)))))));
}

// A part that opens: made when it is opened first, so that a long table costs nothing unseen.
function folded(label, make, memory, key) {
  const keep = (open) => { memory.open = { ...memory.open, [key]: open }; };
  // The click is noted at once: "toggle" comes later, and the panel may be painted in between.
  const head = node("summary", { onclick: () => keep(!part.open) }, label);
  const part = node("details", { "data-key": key, open: Boolean(memory.open?.[key]) }, head);
  const built = () => { if (part.open && part.children.length === 1) part.append(make()); };
  part.addEventListener("toggle", () => {
    if (part.isConnected) keep(part.open);
    built();
  });
  built();
  return part;
}

function labelled(text, control) {
  const id = `tilelab-${stamp}-${++fresh}`;
  control.id = id;
  return node("span", { class: "tl-control" }, node("label", { for: id }, text), control);
}

function choice(text, options, value, changed, key) {
  const control = node("select", { "data-key": key, onchange: (event) => changed(event.target.value) },
    options.map(([name, words]) => node("option", { value: name, selected: name === value }, words)));
  return labelled(text, control);
}

function slider(text, value, low, high, changed, key) {
  const shown = node("output", {}, String(value));
  const control = node("input", {
    type: "range", min: low, max: high, step: 1, value, "data-key": key,
    oninput: (event) => { shown.textContent = event.target.value; },
    onchange: (event) => changed(Number(event.target.value)),
  });
  const part = labelled(text, control);
  part.append(shown);
  return part;
}

function field(text, value, changed, key, attributes = {}) {
  let sent = String(value);
  const send = (event) => {
    // Enter, then leaving the field: one edit. A field that a repaint takes away is not left.
    if (event.target.value === sent || painting) return;
    sent = event.target.value;
    changed(sent);
  };
  const control = node("input", {
    type: "text", value, "data-key": key, spellcheck: "false", autocomplete: "off", ...attributes,
    onchange: send,
    // Not every host lets Enter end an edit by itself.
    onkeydown: (event) => { if (event.key === "Enter") send(event); },
  });
  return labelled(text, control);
}

function button(text, pressed, key, attributes = {}) {
  return node("button", { type: "button", "data-key": key, ...attributes, onclick: pressed }, text);
}

// A picture made by Python: the same SVG as in the output's static form.
function picture(markup, key) {
  const parsed = new DOMParser().parseFromString(markup, "image/svg+xml").documentElement;
  return node("div", { class: "tl-picture", "data-key": key },
    document.importNode(parsed, true));
}

// Pictures that a narrow column makes scroll can be scrolled by keyboard.
function reachable(body) {
  const set = () => {
    for (const frame of body.querySelectorAll(".tl-picture")) {
      const wide = frame.scrollWidth > frame.clientWidth;
      frame.toggleAttribute("data-wide", wide);
      if (wide) fill(frame, { tabindex: 0, role: "group", "aria-label": "picture, scrolls sideways",
        "data-lm-suppress-shortcuts": "true" }, []);
      else ["tabindex", "role", "aria-label"].forEach((name) => frame.removeAttribute(name));
    }
  };
  const watcher = new ResizeObserver(set);
  watcher.observe(body);
  return [set, () => watcher.disconnect()];
}

function said(memory) {
  return node("p", { class: "tl-said", role: "status", "aria-live": "polite" }, memory.said ?? "");
}

function isDark() {
  const body = document.body, root = document.documentElement;
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false";
  if (body.dataset.vscodeThemeKind) return body.dataset.vscodeThemeKind.includes("dark");
  if (root.getAttribute("theme")) return root.getAttribute("theme") === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

function followTheme(root) {
  const set = () => { root.dataset.theme = isDark() ? "dark" : "light"; };
  set();
  const watcher = new MutationObserver(set);
  watcher.observe(document.body, { attributes: true });
  watcher.observe(document.documentElement, { attributes: true });
  return () => watcher.disconnect();
}

// A row of colours with their meaning: never a colour alone. `items`: [[fill, text], ...].
function legend(items) {
  return node("ul", { class: "tl-legend" }, items.map(([paint, text]) => node("li", {},
    node("span", { class: "tl-swatch", style: `background:${paint}`, "aria-hidden": "true" }), text)));
}

// What became of a wish: working, and later that nothing answers (the kernel is gone, or this is
// a saved page). The picture stays as it was.
const SLOW = 400, GONE = 20000;
const NO_KERNEL = "No kernel answers: the picture shows the last state. Run the cell again to go on.";

function waiting(root, line) {
  let timers = [];
  const clear = () => {
    timers.forEach(clearTimeout);
    timers = [];
    root.removeAttribute("aria-busy");
    line.textContent = "";
  };
  return {
    clear,
    begin() {
      clear();
      timers = [
        setTimeout(() => { root.setAttribute("aria-busy", "true"); line.textContent = "working…"; },
          SLOW),
        setTimeout(() => { clear(); line.textContent = NO_KERNEL; }, GONE),
      ];
    },
    fail() { clear(); line.textContent = NO_KERNEL; },
  };
}

// A press is one act from down to up: a repaint in between would take the pressed element away, and
// the click with it. `later(call)` runs `call` at once, or when the pointer is up again.
const LONGEST_PRESS = 3000; // an "up" outside of the window may never be told

function pressing(root) {
  let down = false, wanted = null, timer = null;
  const up = () => {
    if (!down) return;
    clearTimeout(timer);
    timer = setTimeout(() => { // after the click that this "up" makes
      down = false;
      const call = wanted;
      wanted = null;
      call?.();
    });
  };
  const press = () => {
    down = true;
    clearTimeout(timer);
    timer = setTimeout(up, LONGEST_PRESS);
  };
  root.addEventListener("pointerdown", press);
  for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, up);
  return [(call) => { if (down) wanted = call; else call(); }, () => {
    clearTimeout(timer);
    for (const name of ["pointerup", "pointercancel"]) document.removeEventListener(name, up);
  }];
}

// What is being typed, which a repaint must not take away: [key, text, selection].
function draftIn(body) {
  const at = document.activeElement;
  if (!body.contains(at) || !at.dataset.key) return [undefined];
  const typed = at.tagName === "INPUT" && at.type !== "range" && at.value !== at.defaultValue;
  return [at.dataset.key, typed ? at.value : null, typed ? at.selectionStart : null];
}

function takeUp(body, [key, text, cursor]) {
  const part = key && body.querySelector(`[data-key="${key}"]`);
  if (!part) return;
  part.focus({ preventScroll: true });
  if (text === null || part.tagName !== "INPUT") return;
  part.value = text;
  if (cursor !== null) part.setSelectionRange(cursor, cursor);
}

// anywidget's entry. `draw(body, state, ask, memory)` fills `body` from `state`; `ask(request)`
// sends a wish to Python, whose answer is a new state; `memory` lives as long as the view.
function mount(draw) {
  return {
    render({ model, el }) {
      const memory = {};
      let serial = 0;
      const ask = (request) => {
        wait.begin();
        try {
          model.set("ask", { ...request, serial: ++serial });
          model.save_changes();
        } catch { wait.fail(); }
      };
      const body = node("div", { class: "tl-body" });
      const problem = node("p", { class: "tl-problem", role: "alert" });
      const busy = node("p", { class: "tl-busy", role: "status" });
      const root = node("section", { class: "tilelab" }, problem, body, busy);
      const wait = waiting(root, busy);
      const paint = () => {
        const state = model.get("state");
        const draft = draftIn(body);
        root.setAttribute("aria-label", state.title);
        painting = true;
        body.replaceChildren();
        painting = false;
        draw(body, state, ask, memory);
        takeUp(body, draft);
        scrolls();
        root.dataset.painted = String(Number(root.dataset.painted ?? 0) + 1);
      };
      const [later, release] = pressing(root);
      const [scrolls, unwatch] = reachable(body);
      const repaint = () => later(paint);
      const complain = () => {
        problem.textContent = model.get("problem");
        problem.hidden = !model.get("problem");
      };
      model.on("change:state", repaint);
      model.on("change:problem", complain);
      model.on("change:answered", wait.clear);
      el.append(root);
      const unfollow = followTheme(root);
      memory.repaint = paint;
      complain();
      paint();
      return () => {
        unfollow();
        memory.stop?.();
        release();
        unwatch();
        model.off("change:state", repaint);
        model.off("change:problem", complain);
        model.off("change:answered", wait.clear);
        wait.clear();
      };
    },
  };
}
