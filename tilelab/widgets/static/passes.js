// Pass explorer: before and after each pass, unchanged lines greyed, lines linked by Python line.
function listing(label, rows, memory, key) {
  const lines = rows.map(([number, text, python, same]) => node("span", {
    class: "tl-line", "data-same": Boolean(same), "data-python": python.join(" "),
    title: same ? "unchanged by this pass" : null,
  }, node("span", { class: "tl-number" }, String(number)), text));
  const code = node("div", { class: "tl-code", tabindex: 0, role: "region", "aria-label": label,
    "data-key": key }, ...lines);
  return node("div", { class: "tl-listing" }, node("h3", {}, label), code);
}

function light(body, wanted, status) {
  let count = 0;
  for (const line of body.querySelectorAll(".tl-line")) {
    const own = line.dataset.python ? line.dataset.python.split(" ") : [];
    const lit = own.some((number) => wanted.includes(number));
    line.toggleAttribute("data-lit", lit);
    count += lit ? 1 : 0;
  }
  status.textContent = wanted.length
    ? `Python line ${wanted.join(", ")}: ${count} lines belong to it` : "";
}

function draw(body, state, ask, memory) {
  const status = said(memory), step = state.passes[state.chosen];
  const names = state.passes.map((p, k) =>
    [String(k), `${k + 1}. ${p.name}${p.changed ? "" : " (changed nothing)"}`]);
  const go = (k) => ask({ pass: Math.min(Math.max(k, 0), state.passes.length - 1) });
  const python = state.python.map(([n, text]) => [n, text, [n], false]);
  const parts = [
    listing(`before ${step.name}`, state.before.map(([t, same, p], k) => [k + 1, t, p, same]),
      memory, "before"),
    listing(`after ${step.name}`, state.after.map(([t, same, p], k) => [k + 1, t, p, same]),
      memory, "after"),
    listing("Python", python, memory, "python"),
    listing("CUDA", state.cuda.map(([n, t, p]) => [n, t, p, false]), memory, "cuda"),
  ];
  if (state.sass.length)
    parts.push(listing("SASS", state.sass.map(([n, t, p]) => [n, t, p, false]), memory, "sass"));
  fill(body, {}, [
    node("h3", {}, `${state.title}: ${state.summary}`),
    node("div", { class: "tl-bar" },
      choice("pass", names, String(state.chosen), (k) => go(Number(k)), "pass"),
      button("previous", () => go(state.chosen - 1), "previous", { disabled: !state.chosen }),
      button("next", () => go(state.chosen + 1), "next",
        { disabled: state.chosen === state.passes.length - 1 }),
      button(state.sass.length ? "hide machine code" : "show machine code (SASS)",
        () => ask({ sass: !state.sass.length }), "sass-button")),
    node("p", {}, step.caption),
    step.notes.length ? node("ul", {}, step.notes.map((text) => node("li", {}, text))) : null,
    status,
    node("div", { class: "tl-panes" }, ...parts)]);
  const follow = (event) => {
    const line = event.target.closest?.(".tl-line");
    if (line && line.dataset.python) light(body, line.dataset.python.split(" "), status);
  };
  body.onmouseover = follow;
  body.onclick = follow;
  // By keyboard: arrows in a listing move a cursor line, which lights what belongs to it.
  for (const code of body.querySelectorAll(".tl-code")) {
    let at = -1;
    code.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      const lines = code.querySelectorAll(".tl-line");
      at = Math.min(Math.max(at + step, 0), lines.length - 1);
      lines[at].scrollIntoView({ block: "nearest" });
      follow({ target: lines[at] });
      event.preventDefault();
    });
  }
}
