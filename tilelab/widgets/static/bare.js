// A page with nothing but one widget and a stub of a model: what anywidget's protocol promises, and a
// list of everything else that a widget touches.
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI}`));
for (const name of ["localStorage", "sessionStorage", "indexedDB"])
  Object.defineProperty(window, name, { get() {
    window.violations.push(name);
    throw new DOMException("no storage here", "SecurityError");
  } });

// The members that anywidget's front-end module protocol promises, and no other.
const PROMISED = ["get", "set", "on", "off", "save_changes", "send", "widget_manager"];

function makeModel(state, answer, comm) {
  const data = { state, ask: {}, problem: "", answered: 0 }, listeners = {};
  const model = {
    get: (name) => data[name],
    set: (name, value) => { data[name] = value; },
    on: (name, call) => (listeners[name] ??= new Set()).add(call),
    off: (name, call) => {
      if (!name) for (const key of Object.keys(listeners)) delete listeners[key];
      else if (!call) delete listeners[name];
      else listeners[name]?.delete(call);
    },
    save_changes: () => {
      if (comm === "none") throw new Error("no comm");
      if (comm === "silent") return;
      answer(JSON.stringify(data.ask)).then((text) => {
        for (const [name, value] of Object.entries(JSON.parse(text))) {
          if (JSON.stringify(data[name]) === JSON.stringify(value)) continue;
          data[name] = value;
          for (const call of listeners[`change:${name}`] ?? []) call();
        }
      });
    },
    send: () => { throw new Error("no custom messages here"); },
    widget_manager: {},
  };
  model.count = () => Object.values(listeners).reduce((n, set) => n + set.size, 0);
  // As when another view of the model, or the kernel by itself, brings a new state.
  model.push = (state) => {
    data.state = state;
    for (const call of listeners["change:state"] ?? []) call();
  };
  window.model = model;
  return new Proxy(model, { get(target, name) {
    if (!PROMISED.includes(name)) window.violations.push(`model.${String(name)}`);
    return target[name];
  } });
}

window.start = async ({ esm, css, state, comm, protocol }) => {
  const sheet = document.createElement("style");
  sheet.textContent = css;
  document.head.append(sheet);
  const model = makeModel(state, window.answer, comm);
  const url = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
  const module = await import(url);
  URL.revokeObjectURL(url);
  const widget = typeof module.default === "function" ? await module.default() : module.default;
  const el = document.createElement("div");
  document.body.replaceChildren(el);
  const began = performance.now();
  if (protocol === "signal") {  // anywidget 0.10 and later: an abort signal ends a view
    const ending = new AbortController();
    await widget.initialize?.({ model, signal: ending.signal });
    const cleanup = await widget.render({ model, el, signal: ending.signal });
    window.end = () => { ending.abort(); cleanup?.(); };
  } else {  // anywidget 0.9: a function that is called at the end
    await widget.initialize?.({ model });
    window.end = (await widget.render({ model, el })) ?? (() => {});
  }
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - began;
};
