// Shared-memory budget: bytes by buffer, stage and chip, and what limits occupancy.
function draw(body, state, ask, memory) {
  const controls = [];
  if (state.pipelined) controls.push(slider("num_stages", state.stages, 0, state.most_stages,
    (stages) => ask({ stages, target: state.target }), "stages"));
  controls.push(choice("chip", state.targets.map((name) => [name, name]), state.target,
    (target) => ask({ stages: state.stages, target }), "target"));
  body.append(node("h3", {}, state.title), node("div", { class: "tl-bar" }, ...controls),
    node("p", { class: "tl-muted", "data-note": true, role: "status" }, state.note));
  state.kernels.forEach((kernel, k) => {
    body.append(node("div", { class: "tl-kernel" },
      node("p", { class: "tl-verdict", "data-total": kernel.total, "data-good": String(kernel.fits) },
        `${kernel.total.toLocaleString()} bytes; ${kernel.verdict}. ${kernel.largest.join("; ")}`),
      picture(kernel.svg, `kernel-${k}`),
      folded("as a table", () => table(kernel.name, kernel.head, kernel.rows), memory, `rows-${k}`)));
  });
}
