"use strict";
(() => {
  const { cases, themes, digits, points } = JSON.parse(document.getElementById("roofbench-cases").textContent);
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const CONFIG = { displayModeBar: false, responsive: true, showSendToCloud: false, plotlyServerURL: "" };
  const STEPS = digits.length ** 2 - 1;
  // Pixels.
  const TITLE = 22, AXIS = 44, LEFT = 68, RIGHT = 14, TICK_LABEL = 44;
  const HEIGHTS = { samples: 180, clock: 90, power: 90, temperature: 60, reason: 34 };

  function unpack(text, low, high) {
    const values = [];
    for (let i = 0; i < text.length; i += 2) {
      const step = digits.indexOf(text[i]) * digits.length + digits.indexOf(text[i + 1]);
      values.push(low + ((high - low) * step) / STEPS);
    }
    return values;
  }

  // Plotly reads a little HTML in every text that it draws.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  function scaled(value, unit) {
    const scales = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
    const [scale, prefix] = scales.find(([least]) => Math.abs(value) >= least * 0.99995) || [1, ""];
    return `${Number((value / scale).toPrecision(4))} ${prefix}${unit}`;
  }

  // A place on the axis belongs to the nearest stretch; between two of them time was idle.
  function stretchOf(axis, x) {
    let index = 0;
    while (index + 1 < axis.length && x > (axis[index][3] + axis[index + 1][2]) / 2) index += 1;
    return index;
  }

  function momentOf(axis, x) {
    const [began, ended, left, right] = axis[stretchOf(axis, x)];
    const share = right > left ? Math.min(1, Math.max(0, (x - left) / (right - left))) : 0;
    return `at ${Number((began + share * (ended - began)).toPrecision(5))} s`;
  }

  // What was read in different stretches is not joined by a line.
  function broken(axis, points) {
    const found = [];
    points.forEach((point, index) => {
      if (axis && index && stretchOf(axis, points[index - 1].x) !== stretchOf(axis, point.x)) found.push({ x: null, y: null });
      found.push(point);
    });
    return found;
  }

  // A value of the device's own counter is a mean over the time that ends with it.
  function stepsBack(axis, points) {
    const found = [];
    points.forEach((point, index) => {
      const stretch = stretchOf(axis, point.x);
      const first = !index || stretchOf(axis, points[index - 1].x) !== stretch;
      if (first && index) found.push({ x: null, y: null });
      found.push({ ...point, x: first ? axis[stretch][2] : points[index - 1].x }, point);
    });
    return found;
  }

  function trace(points, axisName, style) {
    return {
      x: points.map((point) => point.x),
      y: points.map((point) => point.y),
      hovertext: points.map((point) => point.text || ""),
      hoverinfo: "text",
      type: "scatter",
      yaxis: axisName,
      showlegend: false,
      connectgaps: false,
      ...style,
    };
  }

  function samplesTrace(data, ink) {
    const { x, y, p05, p95, range } = data.samples;
    const [low, high] = range;
    const at = unpack(x, 0, 1), medians = unpack(y, low, high);
    const lows = p05 ? unpack(p05, low, high) : medians, highs = p95 ? unpack(p95, low, high) : medians;
    const points = at.map((place, index) => ({
      x: place,
      y: medians[index],
      up: highs[index] - medians[index],
      down: medians[index] - lows[index],
      text: `${scaled(medians[index], "s")}${p05 ? ` (p05 ${scaled(lows[index], "s")}, p95 ${scaled(highs[index], "s")})` : ""}` +
        (data.ordered ? "" : ` ${momentOf(data.axis, place)}`),
    }));
    const drawn = broken(data.ordered ? null : data.axis, points);
    const bars = { type: "data", symmetric: false, array: drawn.map((p) => p.up ?? 0), arrayminus: drawn.map((p) => p.down ?? 0) };
    return trace(drawn, "y", {
      mode: "lines+markers",
      line: { color: ink.accent, width: 1 },
      marker: { color: ink.accent, size: 4 },
      ...(p05 ? { error_y: { ...bars, color: ink.muted, thickness: 1, width: 0 } } : {}),
    });
  }

  function readings(data, track, unit, axisName, style) {
    const [low, high] = track.range;
    const values = unpack(track.y, low, high);
    const points = unpack(data.times[track.at], 0, 1).map((x, index) => ({
      x,
      y: values[index],
      text: `${plain(track.name)} ${scaled(values[index], unit)} ${momentOf(data.axis, x)}`,
    }));
    const drawn = track.backward ? stepsBack(data.axis, points) : broken(data.axis, points);
    return trace(drawn, axisName, { mode: "lines+markers", ...style });
  }

  function reasonTrace(data, [name, share, runs], row, axisName, ink) {
    const text = `${plain(name)}, ${share} of readings`;
    const points = runs.flatMap(([from, to]) => [{ x: from, y: row, text }, { x: to, y: row, text }, { x: null, y: null }]);
    return trace(points, axisName, { mode: "lines", line: { color: ink.alert, width: 10 } });
  }

  function samplesPanel(data, ink) {
    return {
      title: `time of one launch${data.samples.p05 ? " (bars: p05 to p95)" : ""}`,
      height: HEIGHTS.samples,
      traces: () => [samplesTrace(data, ink)],
      axis: { tickformat: "~s", ticksuffix: "s" },
    };
  }

  // Each panel has its title, its height, its traces and how its axis is written.
  function readingPanels(data, ink) {
    const line = { color: ink.text, width: 1.2 }, marker = { color: ink.text, size: 4 };
    const found = [];
    if (data.clocks.length) {
      const [own, other] = data.clocks;
      const dotted = { line: { color: ink.muted, width: 1.2, dash: "dot" }, marker: { color: ink.muted, size: 3 } };
      found.push({
        title: `${plain(own.name)}${other ? `, dotted: ${plain(other.name)}` : ""}`,
        height: HEIGHTS.clock,
        traces: (axisName) => [
          ...(other ? [readings(data, other, "Hz", axisName, dotted)] : []),
          readings(data, own, "Hz", axisName, { line, marker }),
        ],
        axis: { tickformat: "~s", ticksuffix: "Hz" },
      });
    }
    if (data.power) {
      found.push({
        title: data.limit ? `power, limit ${scaled(data.limit, "W")} dashed` : "power",
        height: HEIGHTS.power,
        traces: (axisName) => [readings(data, data.power, "W", axisName, { line, marker })],
        limit: data.limit,
        axis: { ticksuffix: "W", range: [0, 1.08 * Math.max(data.limit || 0, data.power.range[1])] },
      });
    }
    if (data.temperature) {
      found.push({
        title: "temperature",
        height: HEIGHTS.temperature,
        traces: (axisName) => [readings(data, data.temperature, "°C", axisName, { line, marker })],
        axis: { ticksuffix: "°C" },
      });
    }
    if (data.throttle.length) {
      found.push({
        title: "throttle reasons that the driver named",
        height: HEIGHTS.reason * data.throttle.length,
        traces: (axisName) => data.throttle.map((reason, row) => reasonTrace(data, reason, -row, axisName, ink)),
        labels: data.throttle.map(([name, share]) => `${plain(name)}, ${share} of readings`),
        axis: { range: [0.5 - data.throttle.length, 0.75], showticklabels: false, ticks: "", showgrid: false },
      });
    }
    return found;
  }

  function ticks(data, width) {
    const room = TICK_LABEL / Math.max(1, width - LEFT - RIGHT);
    const kept = [];
    for (const tick of [...data.ticks].sort((a, b) => b[2] - a[2])) {
      if (kept.every(([at]) => Math.abs(at - tick[0]) >= room)) kept.push(tick);
    }
    return { tickvals: kept.map(([at]) => at), ticktext: kept.map(([, label]) => label) };
  }

  // One figure of panels over one axis: of seconds, or, for samples alone, of their order.
  function figure(data, parts, inOrder, ink, width) {
    const height = AXIS + parts.reduce((sum, part) => sum + TITLE + part.height, 0);
    const inner = height - AXIS;
    const common = { gridcolor: ink.grid, linecolor: ink.muted, showline: true, ticks: "outside", zeroline: false, fixedrange: true };
    const layout = {
      height,
      margin: { l: LEFT, r: RIGHT, t: 0, b: AXIS },
      paper_bgcolor: ink.background,
      plot_bgcolor: ink.background,
      font: { family: "system-ui, sans-serif", size: 12, color: ink.text },
      hoverlabel: { bgcolor: ink.background, bordercolor: ink.muted, font: { color: ink.text } },
      hovermode: "closest",
      dragmode: false,
      annotations: [],
      shapes: [],
      xaxis: { ...common, range: [-0.005, 1.005], showgrid: false, anchor: parts.length > 1 ? `y${parts.length}` : "y" },
    };
    if (inOrder) Object.assign(layout.xaxis, { showticklabels: false, ticks: "", title: { text: "samples in the order they were taken", standoff: 6, font: { size: 12 } } });
    else Object.assign(layout.xaxis, ticks(data, width), { title: { text: "seconds since the first window opened", standoff: 6, font: { size: 12 } } });
    const traces = [];
    let top = height - AXIS;
    parts.forEach((part, index) => {
      const axisName = index ? `y${index + 1}` : "y", key = index ? `yaxis${index + 1}` : "yaxis";
      const ends = [Math.max(0, top - TITLE - part.height) / inner, (top - TITLE) / inner];
      layout[key] = { ...common, domain: ends, nticks: 4, ...part.axis };
      layout.annotations.push({ text: part.title, xref: "paper", yref: "paper", x: 0, y: ends[1], xanchor: "left", yanchor: "bottom", showarrow: false, font: { color: ink.muted } });
      (part.labels || []).forEach((text, row) => {
        layout.annotations.push({ text, xref: "paper", yref: axisName, x: 0.005, y: 0.22 - row, xanchor: "left", yanchor: "bottom", showarrow: false, font: { size: 11 } });
      });
      if (part.limit) layout.shapes.push({ type: "line", xref: "paper", yref: axisName, x0: 0, x1: 1, y0: part.limit, y1: part.limit, line: { color: ink.muted, width: 1, dash: "dash" } });
      traces.push(...part.traces(axisName));
      top -= TITLE + part.height;
    });
    (inOrder ? [] : data.axis).slice(1).forEach((stretch, index) => {
      const shade = { type: "rect", xref: "x", yref: "paper", x0: data.axis[index][3], x1: stretch[2], y0: 0, y1: 1 };
      layout.shapes.push({ ...shade, fillcolor: ink.grid, opacity: 0.6, line: { width: 0 }, layer: "below" });
    });
    return { traces, layout };
  }

  function element(name, properties = {}, children = []) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  function floorsTable(data) {
    const heading = (text) => element("th", { scope: "col", textContent: text });
    const line = ([name, time, times, basis, applies]) => element("tr", { className: applies ? "applies" : "" }, [
      element("th", { scope: "row", textContent: name }),
      ...[time, times, basis].map((text) => element("td", { textContent: text })),
    ]);
    return element("table", { className: "floors" }, [
      element("caption", { textContent: data.verdict }),
      element("thead", {}, [element("tr", {}, ["Floor", "Time", "The median is", "From"].map(heading))]),
      element("tbody", {}, data.floors.map(line)),
    ]);
  }

  function note(data) {
    const groups = data.samples.x.length / 2;
    return [
      `${data.taken}; drawn as ${groups} ${data.samples.p05 ? "groups of neighbours" : "points"}, readings as at most ${points} a series.`,
      data.axis && data.axis.length > 1 ? "The idle time between windows is cut short (shaded)." : "",
      ...[data.about_clocks, data.remark, data.missing].map((said) => (said ? `${said[0].toUpperCase()}${said.slice(1)}.` : "")),
      data.ordered ? "This store does not say when the samples were taken." : "",
    ].filter(Boolean).join(" ");
  }

  // Where nothing says when the samples were taken, they stand above the readings on an axis of their own.
  function figures(data, ink, width) {
    const readings = data.axis ? readingPanels(data, ink) : [];
    if (!data.ordered) return [figure(data, [samplesPanel(data, ink), ...readings], false, ink, width)];
    const above = figure(data, [samplesPanel(data, ink)], true, ink, width);
    return readings.length ? [above, figure(data, readings, false, ink, width)] : [above];
  }

  const open = new Map();

  function draw({ data, plots }, name, width) {
    figures(data, themes[name], width || plots[0].clientWidth).forEach(({ traces, layout }, index) => {
      plots[index].hidden = false;
      plots[index].style.height = `${layout.height}px`; // else a window that changes gives it another
      Plotly.react(plots[index], traces, { ...layout, ...(width ? { width } : { autosize: true }) }, CONFIG);
    });
  }

  const theme = () => (prefersDark.matches ? "dark" : "light");
  const drawAll = (name, width) => open.forEach((entry) => draw(entry, name, width));
  const drawForScreen = () => drawAll(theme());

  function show(button) {
    const row = button.closest("tr"), data = cases[button.dataset.case];
    const label = `${data.verdict}; ${data.taken}`;
    const plots = [0, 1].map((index) => element("div", { className: "case-plot", role: "img", ariaLabel: label, hidden: index > 0 }));
    const text = element("p", { className: "small", textContent: note(data) });
    const body = element("div", { className: "case-body" }, [floorsTable(data), ...plots, text]);
    const cell = element("td", { colSpan: row.closest("table").tHead.rows[0].cells.length }, [body]);
    row.detail = element("tr", { className: "case-detail" }, [cell]);
    row.after(row.detail);
    button.setAttribute("aria-expanded", "true");
    open.set(button, { data, plots });
    draw(open.get(button), theme());
  }

  function hide(button) {
    const row = button.closest("tr");
    open.get(button).plots.forEach((plot) => Plotly.purge(plot));
    open.delete(button);
    row.detail.remove();
    row.detail = undefined;
    button.setAttribute("aria-expanded", "false");
  }

  for (const button of document.querySelectorAll("button.case")) {
    button.addEventListener("click", () => (open.has(button) ? hide(button) : show(button)));
  }
  document.addEventListener("roofbench-case", ({ detail }) => {
    const button = document.querySelector(`button.case[data-case="${detail}"]`);
    if (!button) return;
    if (!open.has(button)) show(button);
    button.scrollIntoView({ block: "start" });
    button.focus({ preventScroll: true });
  });
  prefersDark.addEventListener("change", drawForScreen);
  window.addEventListener("beforeprint", () => drawAll("light", 1000));
  window.addEventListener("afterprint", drawForScreen);
})();
