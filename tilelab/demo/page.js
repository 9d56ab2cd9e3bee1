// Marks a line of code and its partners on the other side while it is pointed at or focused.
(function () {
  "use strict";
  let marked = [];
  function partners(line) {
    return line.dataset.to.split(" ").map((id) => document.getElementById(id)).filter(Boolean);
  }
  function mark(line, reveal) {
    marked.forEach((other) => other.classList.remove("on"));
    const others = partners(line);
    marked = [line, ...others];
    marked.forEach((other) => other.classList.add("on"));
    if (reveal && others.length) {
      const box = others[0].parentElement;
      box.scrollTo({ top: others[0].offsetTop - box.offsetTop - box.clientHeight / 3 });
    }
  }
  document.querySelectorAll(".code li[data-to]").forEach((line) => {
    line.addEventListener("mouseenter", () => mark(line, false));
    line.addEventListener("focus", () => mark(line, true));
    line.addEventListener("click", () => mark(line, true));
  });
})();
