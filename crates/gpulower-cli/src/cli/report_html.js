// A click on a line marks all lines of the same code that belong to the same line of the source, and brings them into view.
"use strict";
function show(code, line) {
  for (const at of code.querySelectorAll(".at")) at.classList.remove("at");
  for (const pre of code.querySelectorAll("pre")) {
    const lines = pre.querySelectorAll(`[data-line="${line}"]`);
    for (const each of lines) each.classList.add("at");
    if (lines.length) pre.scrollTop = lines[0].offsetTop - pre.offsetTop - pre.clientHeight / 3;
  }
}
for (const code of document.querySelectorAll(".code")) {
  code.addEventListener("click", (event) => {
    const line = event.target.closest("[data-line]");
    if (line) show(code, line.dataset.line);
  });
}
// `report.html#24` shows line 24.
if (/^#\d+$/.test(location.hash)) {
  for (const code of document.querySelectorAll(".code")) show(code, location.hash.slice(1));
}
