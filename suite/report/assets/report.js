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
    const bars = {};
    for (const name of ["error_x", "error_y"]) {
      if (colours.error && trace[name]) bars[name] = { ...trace[name], color: colours.error };
    }
    return { ...trace, marker, line, ...bars };
  }

  // Pixels that the buttons of a figure take above it: a legend that began there would lie under them.
  const BUTTONS = 32;

  function withRoom(layout) {
    const { height, legend, margin } = layout;
    if (!height) return layout;
    const taller = height + BUTTONS;
    const isPlaced = legend && legend.yref === "container" && legend.y !== undefined;
    const y = isPlaced ? 1 - ((1 - legend.y) * height + BUTTONS) / taller : undefined;
    return {
      ...layout,
      height: taller,
      margin: { ...margin, t: ((margin || {}).t || 0) + BUTTONS },
      ...(isPlaced ? { legend: { ...legend, y } } : {}),
    };
  }

  // Pixels that are left free at the right of a key.
  const EDGE = 8;
  const pen = document.createElement("canvas").getContext("2d");

  // The lines of a key: as many entries on one as fit, and words of an entry that is wider than any.
  function wrapped({ paragraphs, gap }, room) {
    const fits = (text) => pen.measureText(text).width <= room;
    return paragraphs.flatMap((paragraph) => {
      const lines = [];
      for (const entry of paragraph.split(gap)) {
        const words = fits(entry) ? [entry] : entry.split(/[ \u00a0]/);
        words.forEach((word, index) => {
          const longer = `${lines.at(-1)}${index ? "\u00a0" : gap}${word}`;
          if (lines.length && (index || words.length === 1) && fits(longer)) lines[lines.length - 1] = longer;
          else lines.push(word);
        });
      }
      return lines;
    });
  }

  // A figure comes with its key wrapped for a telephone: here it has the lines that its width holds, and their height.
  function withKey(layout, width) {
    const { annotations, font, height, legend, margin, meta } = layout;
    const note = (annotations || []).find(({ name }) => name === "key");
    if (!note) return layout;
    pen.font = `${note.font.size}px ${font.family}`;
    const lines = wrapped(meta.key, width - margin.l - note.xshift - EDGE);
    const saved = meta.key.line_px * (note.text.split("<br>").length - lines.length);
    const text = lines.join("<br>");
    const place = legend && legend.yanchor === "bottom"
      ? { y: 1 - ((1 - legend.y) * height) / (height - saved) }
      : legend && { y: (legend.y * height) / (height - saved) };
    return {
      ...layout,
      height: height - saved,
      margin: { ...margin, b: margin.b - saved },
      annotations: annotations.map((each) => (each === note ? { ...note, text } : each)),
      ...(legend && legend.yref === "container" ? { legend: { ...legend, ...place } } : {}),
    };
  }

  function draw(figure, name, width) {
    const theme = figure.themes[name];
    const data = figure.data.map((trace, index) => coloured(trace, theme.colours[index]));
    const room = width || theme.layout.width || figure.target.clientWidth;
    const layout = { ...withRoom(withKey(theme.layout, room)), uirevision: "kept", ...(width ? { width } : { autosize: true }) };
    figure.room = room;
    // When the window changes Plotly takes the height of the figure's place for that of the figure.
    if (layout.height) figure.target.style.height = `${layout.height}px`;
    return Plotly.react(figure.target, data, layout, figure.config);
  }

  // What is folded away has no width to be drawn in, and is drawn when it is opened.
  const folded = ({ target }) => target.closest("details:not([open])") !== null;
  const theme = () => (prefersDark.matches ? "dark" : "light");

  // A point opens its case in the table.
  function drawFirst(figure) {
    draw(figure, theme());
    figure.target.on("plotly_click", ({ points }) => {
      if (points[0].customdata !== undefined) {
        document.dispatchEvent(new CustomEvent("roofbench-case", { detail: points[0].customdata }));
      }
    });
    figure.drawn = true;
  }
  figures.filter((figure) => !folded(figure)).forEach(drawFirst);
  for (const figure of figures.filter(folded)) {
    figure.target.closest("details").addEventListener("toggle", () => {
      if (folded(figure)) return;
      if (figure.drawn) draw(figure, theme());
      else drawFirst(figure);
    });
  }
  const drawAll = (name, width) => {
    figures.filter((figure) => figure.drawn && !folded(figure)).forEach((figure) => draw(figure, name, width));
  };
  const drawForScreen = () => drawAll(theme());
  prefersDark.addEventListener("change", drawForScreen);
  let isPrinting = false;
  window.addEventListener("beforeprint", () => {
    isPrinting = true;
    drawAll("light", 1000);
  });
  window.addEventListener("afterprint", () => {
    isPrinting = false;
    drawForScreen();
  });

  // Another width holds other lines of a key.
  const widths = new ResizeObserver(() => requestAnimationFrame(() => {
    if (isPrinting) return;
    figures
      .filter((figure) => figure.drawn && !folded(figure))
      .filter(({ room, target, themes }) => !themes[theme()].layout.width && room !== target.clientWidth)
      .forEach((figure) => draw(figure, theme()));
  }));
  figures.forEach(({ target }) => widths.observe(target));

  // Rows without a value stay at the end, whichever way the others are sorted.
  function compare(a, b) {
    const numbers = [Number(a), Number(b)];
    return numbers.some(Number.isNaN) ? a.localeCompare(b, undefined, { numeric: true }) : numbers[0] - numbers[1];
  }

  // The cell of a column; one that spans several, the reason of a failed case, stands for the last of them.
  function cellAt(row, column) {
    let next = 0;
    for (const cell of row.cells) {
      next += cell.colSpan;
      if (column < next) return column === next - 1 ? cell : null;
    }
    return null;
  }

  // A heading cell sorts by its text.
  function sortKey(cell, column) {
    if (!cell) return "";
    return cell.dataset.sort ?? (column === 0 ? cell.textContent : "");
  }

  // What a case shows when it is opened goes where its row goes.
  const rowsOf = (body) => [...body.rows].filter((row) => !row.classList.contains("case-detail"));
  const withDetail = (row) => (row.detail ? [row, row.detail] : [row]);

  function sortBy(table, column, direction) {
    const body = table.tBodies[0];
    const keyed = rowsOf(body).map((row) => ({ row, key: sortKey(cellAt(row, column), column) }));
    const known = keyed.filter(({ key }) => key !== "").sort((a, b) => direction * compare(a.key, b.key));
    body.append(...known.concat(keyed.filter(({ key }) => key === "")).flatMap(({ row }) => withDetail(row)));
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
    const rows = rowsOf(document.getElementById(filter.dataset.table).tBodies[0]);
    filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/);
      rows.forEach((row) => {
        const text = row.textContent.toLowerCase();
        const hidden = !words.every((word) => text.includes(word));
        withDetail(row).forEach((each) => { each.hidden = hidden; });
      });
    });
  }

  // A table that is wider than its place says so, and shows at which end more of it lies.
  for (const scroll of document.querySelectorAll(".scroll")) {
    const frame = scroll.parentElement;
    const look = () => {
      const hidden = scroll.scrollWidth - scroll.clientWidth;
      frame.classList.toggle("wide", hidden > 1);
      frame.classList.toggle("more", hidden - scroll.scrollLeft > 1);
    };
    scroll.addEventListener("scroll", look, { passive: true });
    new ResizeObserver(look).observe(scroll);
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
