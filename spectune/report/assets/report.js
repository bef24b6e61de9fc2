(() => {
  "use strict";
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  document.documentElement.classList.add("scripted");

  // Copy buttons.
  const copyText = async (element) => {
    try {
      await navigator.clipboard.writeText(element.textContent);
    } catch {
      // Not every browser lets a local file use the clipboard; a selection can always be copied.
      getSelection().selectAllChildren(element);
      return document.execCommand("copy");
    }
    return true;
  };
  for (const button of all("button[data-copy]")) {
    const status = document.getElementById(button.getAttribute("aria-describedby"));
    button.addEventListener("click", async () => {
      const done = await copyText(document.getElementById(button.dataset.copy));
      status.textContent = done ? "Copied" : "Selected: press Ctrl+C";
      setTimeout(() => { status.textContent = ""; }, 4000);
    });
  }

  // Points of a chart say what they are: to the pointer, and to the arrow keys.
  for (const plot of all(".plot")) {
    const marks = all("[data-tip]", plot);
    const tip = plot.querySelector(".tip");
    let current = -1;
    const hide = () => {
      tip.hidden = true;
      marks[current]?.classList.remove("current");
    };
    const show = (index) => {
      hide();
      current = index;
      const mark = marks[index];
      mark.classList.add("current");
      tip.textContent = mark.dataset.tip;
      tip.hidden = false;
      const area = plot.getBoundingClientRect();
      const at = mark.getBoundingClientRect();
      const middle = at.left + at.width / 2 - area.left;
      const left = Math.min(Math.max(middle - tip.offsetWidth / 2, 0), Math.max(area.width - tip.offsetWidth, 0));
      const above = at.top - area.top - tip.offsetHeight - 8;
      tip.style.left = `${left}px`;
      tip.style.top = `${above > -60 ? above : at.bottom - area.top + 8}px`;
    };
    marks.forEach((mark, index) => mark.addEventListener("pointerenter", () => show(index)));
    plot.addEventListener("pointerleave", hide);
    plot.addEventListener("blur", hide);
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step || !marks.length) return;
      event.preventDefault();
      show((Math.max(current, step > 0 ? -1 : 0) + step + marks.length) % marks.length);
    });
  }

  // Break-even charts: the probe follows the slider along the line speed = accept length / cycle.
  const svg = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const rounded = (value) => Number(value.toPrecision(4)).toLocaleString("en");
  for (const curve of all(".curve")) {
    const slider = curve.querySelector("input");
    const said = curve.querySelector(".said");
    const [cycle, baseline, top] = ["cycle", "baseline", "top"].map((name) => Number(curve.dataset[name]));
    const [low, high] = curve.dataset.even.split(" ").map(Number);
    const targets = curve.dataset.targets.split(" ").filter(Boolean).map(Number);
    const best = curve.dataset.best.split(" ").filter(Boolean).map((point) => {
      const [tau, speed, settings] = point.split(":");
      return { tau: Number(tau), speed: Number(speed), settings };
    });
    // Between two predictions: the speed on the line between them, the settings of the nearer one.
    const bestAt = (tau) => {
      const after = best.find((point) => point.tau >= tau) ?? best.at(-1);
      const before = best.findLast((point) => point.tau <= tau) ?? best[0];
      const share = after.tau > before.tau ? (tau - before.tau) / (after.tau - before.tau) : 0;
      return { speed: before.speed + share * (after.speed - before.speed), settings: (share < 0.5 ? before : after).settings };
    };
    const probe = svg("use", { href: "#mark-circle", class: "accent open probe" });
    const stem = svg("line", { class: "thin accent", y2: "100%" });
    const place = (tau) => {
      const speed = (tau / cycle) * 1000;
      const x = `${(100 * (tau - slider.min)) / (slider.max - slider.min)}%`;
      const y = `${100 - (100 * Math.min(speed, top)) / top}%`;
      probe.setAttribute("x", x);
      probe.setAttribute("y", y);
      for (const [key, value] of [["x1", x], ["x2", x], ["y1", y]]) stem.setAttribute(key, value);
      return speed;
    };
    place(Number(slider.value));
    curve.querySelector("svg").append(stem, probe);
    slider.addEventListener("input", () => {
      const tau = Number(slider.value);
      const speed = place(tau);
      const verdict = tau > high ? "speculation pays" : tau < low ? "speculation does not pay" : "whether speculation pays is not known";
      const reached = targets.filter((target) => speed >= target);
      const wanted = targets.length ? ` ${reached.length ? `${reached.join(" and ")} tok/s reached.` : "No wanted speed is reached."}` : "";
      let suited = "";
      if (best.length) {
        const { speed: most, settings } = bestAt(tau);
        suited = ` With the steps that suit such a drafter best (${settings}): ${rounded(most)} tok/s.`;
      }
      said.textContent = `Accept length ${tau.toFixed(2)} gives ${rounded(speed)} tok/s, ${(speed / baseline).toFixed(2)} × the best launch without: ${verdict}.${wanted}${suited}`;
    });
  }
  const choice = document.getElementById("what-if-choice");
  choice?.addEventListener("change", () => {
    for (const curve of all(".curve")) curve.hidden = curve.id !== choice.value;
  });

  // The table of all figures: filter by words, sort by column.
  const table = document.getElementById("all-figures");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, text: row.textContent.toLowerCase() }));
  const filter = document.getElementById("filter");
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { row, text } of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    document.getElementById("filtered").textContent = `${shown} of ${rows.length} rows`;
  });
  const value = (row, column) => row.cells[column].firstChild?.textContent.trim() ?? "";
  const figure = (text) => Number.parseFloat(text.replaceAll(",", ""));
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const numeric = head.classList.contains("num");
      const order = (one, two) => {
        const [a, b] = [value(one, column), value(two, column)];
        if (!numeric) return a.localeCompare(b) * (down ? -1 : 1);
        const [x, y] = [figure(a), figure(b)];
        // What was not measured stands last, either way.
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
        return (x - y) * (down ? -1 : 1);
      };
      body.append(...[...body.rows].sort(order));
    });
  });
})();
