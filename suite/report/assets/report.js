"use strict";
(() => {
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const figures = [...document.querySelectorAll("script.figure")].map((source) => ({
    target: document.getElementById(source.dataset.target),
    ...JSON.parse(source.textContent),
  }));

  // The themes of a figure share their data; only colours and layout differ.
  function coloured(trace, colours) {
    const marker = { ...trace.marker, line: { ...(trace.marker || {}).line } };
    if (colours.marker) marker.color = colours.marker;
    if (colours.outline) marker.line.color = colours.outline;
    const line = { ...trace.line };
    if (colours.line) line.color = colours.line;
    return { ...trace, marker, line };
  }

  function draw(figure, name, width) {
    const theme = figure.themes[name];
    const data = figure.data.map((trace, index) => coloured(trace, theme.colours[index]));
    const layout = { ...theme.layout, uirevision: "kept", ...(width ? { width } : { autosize: true }) };
    return Plotly.react(figure.target, data, layout, figure.config);
  }

  const drawAll = (name, width) => figures.forEach((figure) => draw(figure, name, width));
  const drawForScreen = () => drawAll(prefersDark.matches ? "dark" : "light");
  drawForScreen();
  prefersDark.addEventListener("change", drawForScreen);
  window.addEventListener("beforeprint", () => drawAll("light", 1000));
  window.addEventListener("afterprint", drawForScreen);

  // Rows without a value stay at the end, whichever way the others are sorted.
  function compare(a, b) {
    const numbers = [Number(a), Number(b)];
    return numbers.some(Number.isNaN) ? a.localeCompare(b, undefined, { numeric: true }) : numbers[0] - numbers[1];
  }

  // A heading cell sorts by its text; a cell that spans the figures of a failed case has no key.
  function sortKey(cell, column) {
    if (!cell) return "";
    return cell.dataset.sort ?? (column === 0 ? cell.textContent : "");
  }

  function sortBy(table, column, direction) {
    const body = table.tBodies[0];
    const keyed = [...body.rows].map((row) => ({ row, key: sortKey(row.cells[column], column) }));
    const known = keyed.filter(({ key }) => key !== "").sort((a, b) => direction * compare(a.key, b.key));
    body.append(...known.concat(keyed.filter(({ key }) => key === "")).map(({ row }) => row));
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      heading.querySelector("button").addEventListener("click", () => {
        const descending = heading.getAttribute("aria-sort") === "ascending";
        headings.forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
        sortBy(table, column, descending ? -1 : 1);
      });
    });
  }

  for (const filter of document.querySelectorAll("input.filter")) {
    const rows = [...document.getElementById(filter.dataset.table).tBodies[0].rows];
    filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/);
      rows.forEach((row) => {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      });
    });
  }

  for (const button of document.querySelectorAll("button.copy")) {
    const code = button.parentElement.querySelector("code");
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    });
  }
})();
