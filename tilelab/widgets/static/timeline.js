// Pipeline timeline: the planned schedule of a loop, re-planned by a slider.
function planBar(state, ask) {
  return [
    slider("num_stages", state.stages, 0, state.most_stages,
      (stages) => ask({ stages, target: state.target }), "stages"),
    choice("chip", state.targets.map((name) => [name, name]), state.target,
      (target) => ask({ stages: state.stages, target }), "target"),
    choice("times", Object.entries(state.all_times), state.times, (times) => ask({ times }),
      "times"),
  ];
}

function draw(body, state, ask, memory) {
  body.append(node("h3", {}, state.title), node("div", { class: "tl-bar" }, ...planBar(state, ask)),
    node("p", { class: "tl-muted", "data-note": true, role: "status" }, state.note));
  state.loops.forEach((loop, k) => {
    body.append(node("div", { class: "tl-loop" },
      // The picture says the same; this is for readers who do not see it.
      node("p", { class: "tl-headline tl-hidden" }, `${loop.headline}; ` +
        `${loop.in_flight.toLocaleString()} bytes in flight in the steady state`),
      picture(loop.svg, `loop-${k}`),
      folded("schedule as a table", () => table("steps of the plan, not measured time", loop.head,
        loop.rows), memory, `rows-${k}`),
      loop.barriers.length ? folded("barriers: who waits on whom", () =>
        table("mbarriers, one a slot", loop.barrier_head, loop.barriers), memory, `bars-${k}`)
        : null));
  });
  state.schedules.forEach((schedule, k) => {
    body.append(node("div", { class: "tl-loop" },
      node("p", { class: "tl-headline tl-hidden" }, `${schedule.headline}. ${schedule.caption}`),
      picture(schedule.svg, `schedule-${k}`),
      folded("times as a table", () => table(`${schedule.caption}; cycles`, schedule.head,
        schedule.rows), memory, `times-${k}`)));
  });
}
