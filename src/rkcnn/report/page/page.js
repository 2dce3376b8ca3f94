"use strict";
// Sorting, filtering by family, and what a point stands for. Without this script the page shows everything in order.
(() => {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const tip = document.getElementById("tip");
  const NEAR = 22; // pixels: a marker alone is a small thing to hit

  const compare = (a, b) => (isNaN(a) || isNaN(b) ? a.localeCompare(b, "en", { numeric: true }) : a - b);

  function sort(head) {
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = head.closest("table").tBodies[0];
    const value = (row) => row.cells[head.cellIndex].dataset.value;
    const rows = [...body.rows].sort((one, two) => {
      const a = value(one), b = value(two);
      if (a === undefined || b === undefined) return (a === undefined) - (b === undefined); // nothing stays below
      return up ? compare(a, b) : compare(b, a);
    });
    body.append(...rows);
  }

  for (const head of document.querySelectorAll("thead th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sort(head));
    head.replaceChildren(button);
  }

  function filter(view) {
    const boxes = [...view.querySelectorAll(".controls input")];
    const away = new Set(boxes.filter((box) => !box.checked).map((box) => box.value));
    for (const part of view.querySelectorAll("[data-family]")) {
      const out = away.has(part.dataset.family);
      if (part.tagName === "TR") part.hidden = out;
      else part.classList.toggle("away", out);
    }
    const rows = [...view.querySelectorAll(".main tbody tr")];
    view.querySelector("output").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  }

  function light(view, row) {
    for (const part of document.querySelectorAll(".lit")) part.classList.remove("lit");
    if (row === undefined) return;
    for (const part of view.querySelectorAll(`[data-row="${row}"]`)) part.classList.add("lit");
  }

  function show(view, point) {
    const [name, pairs] = facts[view.dataset.view][point.dataset.row];
    const title = document.createElement("strong");
    title.textContent = name;
    const list = document.createElement("dl");
    for (const [key, text] of pairs) {
      const term = document.createElement("dt"), value = document.createElement("dd");
      term.textContent = key;
      value.textContent = text;
      list.append(term, value);
    }
    tip.replaceChildren(title, list);
    tip.hidden = false;
    const at = point.getBoundingClientRect(), size = tip.getBoundingClientRect();
    const right = at.right + 12 + size.width < innerWidth;
    const left = right ? at.right + 12 : Math.max(4, at.left - 12 - size.width);
    const top = Math.min(Math.max(4, at.top - size.height / 2), innerHeight - size.height - 4);
    tip.style.transform = `translate(${left}px, ${top}px)`;
    light(view, point.dataset.row);
  }

  function hide() {
    tip.hidden = true;
    light();
  }

  function findNear(plot, event) {
    let best, least = NEAR;
    for (const point of plot.querySelectorAll(".point:not(.away)")) {
      const at = point.getBoundingClientRect();
      const far = Math.hypot(at.x + at.width / 2 - event.clientX, at.y + at.height / 2 - event.clientY);
      if (far < least) [best, least] = [point, far];
    }
    return best;
  }

  for (const view of document.querySelectorAll(".view")) {
    const controls = view.querySelector(".controls");
    controls.hidden = false;
    controls.addEventListener("change", () => filter(view));
    for (const button of controls.querySelectorAll("[data-all]")) {
      button.addEventListener("click", () => {
        for (const box of controls.querySelectorAll("input")) box.checked = button.dataset.all === "on";
        filter(view);
      });
    }
    for (const plot of view.querySelectorAll(".plot")) {
      const ask = (event) => {
        const point = findNear(plot, event);
        if (point) show(view, point);
        else hide();
      };
      plot.addEventListener("pointermove", ask);
      plot.addEventListener("pointerdown", ask);
      plot.addEventListener("pointerleave", hide);
      for (const point of plot.querySelectorAll(".point")) {
        const [name, pairs] = facts[view.dataset.view][point.dataset.row];
        point.setAttribute("role", "img");
        point.setAttribute("aria-label", `${name}: ${pairs.map((pair) => pair.join(" ")).join(", ")}`);
        point.addEventListener("focus", () => show(view, point));
        point.addEventListener("blur", hide);
      }
    }
    for (const body of view.querySelectorAll("tbody")) {
      body.addEventListener("pointerover", (event) => {
        const row = event.target.closest("tr");
        if (row) light(view, row.dataset.row);
      });
    }
  }

  // A table that is cut off says so: a phone shows no scroll bar.
  const watch = new ResizeObserver((changes) => {
    for (const { target } of changes) target.previousElementSibling.hidden = target.scrollWidth <= target.clientWidth;
  });
  for (const hint of document.querySelectorAll(".hint")) watch.observe(hint.nextElementSibling);

  addEventListener("keydown", (event) => event.key === "Escape" && hide());
  addEventListener("scroll", hide, { passive: true });
})();
