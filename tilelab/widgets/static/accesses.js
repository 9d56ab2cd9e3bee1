// One access of one warp at a time: wavefronts of shared memory, sectors of global memory.
function draw(body, state, ask, memory) {
  const names = state.names.map((name, k) => [String(k), name]);
  body.append(node("h3", {}, state.title),
    node("div", { class: "tl-bar" },
      choice("access", names, String(state.chosen), (k) => ask({ access: Number(k) }), "access"),
      button("worse", () => ask({ access: Math.max(state.chosen - 1, 0) }), "worse",
        { disabled: !state.chosen }),
      button("better", () => ask({ access: Math.min(state.chosen + 1, names.length - 1) }),
        "better", { disabled: state.chosen === names.length - 1 })),
    node("p", { class: "tl-verdict", role: "status", "data-good": String(state.good) }, state.verdict),
    picture(state.svg, "access-picture"),
    folded("the access as text", () => node("pre", { class: "tl-scroll", tabindex: 0 },
      state.text), memory, "text"),
    folded("all accesses as a table", () => table("the worst first", state.head, state.rows),
      memory, "rows"));
}
