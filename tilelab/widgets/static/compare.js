// Plain and fast side by side: the ladder of steps, and one picture of two of them.
function draw(body, state, ask, memory) {
  const names = state.names.map((name, k) => [String(k), `${k}. ${name}`]);
  const sides = state.sides.map((side, k) => node("div", { class: "tl-side" },
    node("div", { class: "tl-bar" }, choice(k ? "right" : "left", names, String(side.variant),
      (variant) => ask({ side: k, variant: Number(variant) }), `side-${k}`)),
    node("p", { class: "tl-muted", "data-facts": k }, side.facts),
    ...side.svgs.map((svg, n) => picture(svg, `side-${k}-${n}`)),
    side.svgs.length ? null : node("p", { class: "tl-muted" }, "This step has no such picture.")));
  body.append(node("h3", {}, state.title), picture(state.ladder, "ladder"),
    folded("steps as a table", () => table(state.headline, state.head, state.rows), memory, "rows"),
    node("div", { class: "tl-bar" }, choice("picture", Object.entries(state.pictures),
      state.picture, (kind) => ask({ picture: kind }), "picture")),
    node("div", { class: "tl-panes" }, ...sides));
}
