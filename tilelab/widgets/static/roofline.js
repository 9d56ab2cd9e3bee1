// Roofline: what bounds the kernel on a chip, and its point where it was timed.
function draw(body, state, ask, memory) {
  body.append(node("h3", {}, state.title),
    node("div", { class: "tl-bar" }, choice("chip", state.targets.map((name) => [name, name]),
      state.target, (target) => ask({ target }), "target")),
    picture(state.svg, "roof"),
    folded("as text", () => node("pre", { class: "tl-scroll", tabindex: 0 }, state.text), memory,
      "text"));
}
