(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("scripted");

  const colour = (styles, value) => {
    if (typeof value === "string") {
      const name = /^var\((--[\w-]+)\)$/.exec(value);
      return name ? styles.getPropertyValue(name[1]).trim() : value;
    }
    if (Array.isArray(value)) return value.map((entry) => colour(styles, entry));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, colour(styles, entry)]));
    }
    return value;
  };

  const figures = JSON.parse(document.getElementById("figures").textContent);
  const draw = () => {
    const styles = getComputedStyle(root);
    for (const [name, figure] of Object.entries(figures)) {
      const { data, layout } = colour(styles, figure);
      const options = { responsive: true, displaylogo: false, displayModeBar: false };
      Plotly.react(`chart-${name}`, data, { ...layout, autosize: true }, options);
    }
  };
  if (Object.keys(figures).length) {
    draw();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  }

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
  for (const button of document.querySelectorAll("button[data-copy]")) {
    const status = document.getElementById(button.getAttribute("aria-describedby"));
    button.addEventListener("click", async () => {
      const done = await copyText(document.getElementById(button.dataset.copy));
      status.textContent = done ? "Copied" : "Selected: press Ctrl+C";
      setTimeout(() => { status.textContent = ""; }, 4000);
    });
  }
})();
