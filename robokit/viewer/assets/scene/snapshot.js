// Pictures of the 3D view, with the background that the canvas itself leaves clear.

// Renders the view and copies it to `canvas`, with `ratio` pixels for one of the page.
function snapshot(stage, canvas, ratio, caption = "") {
  const { renderer } = stage.viewer;
  const before = renderer.getPixelRatio();
  const resize = (to) => { renderer.setPixelRatio(to); stage.viewer.set_3d_pane_size(); };
  if (ratio !== before) resize(ratio);
  stage.draw();
  const drawn = renderer.domElement;
  if (canvas.width !== drawn.width || canvas.height !== drawn.height) {
    canvas.width = drawn.width;
    canvas.height = drawn.height;
  }
  const pen = canvas.getContext("2d", { alpha: false });
  const sky = pen.createLinearGradient(0, 0, 0, canvas.height);
  sky.addColorStop(0.3, colour("sky"));
  sky.addColorStop(1, colour("horizon"));
  pen.fillStyle = sky;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(drawn, 0, 0);
  if (caption) writeCaption(pen, caption, ratio);
  if (ratio !== before) { resize(before); stage.dirty(); }
  return canvas;
}

// Lines of text at the lower left: [text, colour of its mark or null].
function writeCaption(pen, lines, ratio) {
  const size = 13 * ratio, left = 16 * ratio;
  pen.font = `500 ${size}px ${FONT}`;
  pen.textBaseline = "alphabetic";
  let y = pen.canvas.height - 16 * ratio - 1.5 * size * (lines.length - 1);
  for (const [text, mark] of lines) {
    if (mark) {
      pen.fillStyle = mark;
      pen.fillRect(left, y - 0.72 * size, 0.7 * size, 0.7 * size);
    }
    pen.fillStyle = colour("soft");
    pen.fillText(text, mark ? left + 1.1 * size : left, y);
    y += 1.5 * size;
  }
}

const FONT = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

// Plots one over another, each with its title and legend, at a size of their own.
function plotPicture(plots, ratio) {
  const [wide, high, heads, edge] = [680, 240, 58, 12];
  const shown = plots.filter((plot) => plot.chartObject);
  const canvas = element("canvas", { width: (wide + 2 * edge) * ratio, height: (shown.length * (high + heads) + edge) * ratio });
  const pen = canvas.getContext("2d", { alpha: false });
  pen.fillStyle = colour("surface");
  pen.fillRect(0, 0, canvas.width, canvas.height);
  shown.forEach(({ graph, chartObject }, i) => {
    const y = i * (high + heads) * ratio;
    pen.fillStyle = colour("text");
    pen.font = `600 ${13 * ratio}px ${FONT}`;
    pen.fillText(graph.unit.includes("[") ? graph.unit : `${graph.title} [${graph.unit}]`, edge * ratio, y + 24 * ratio);
    pen.font = `500 ${11.5 * ratio}px ${FONT}`;
    let x = edge * ratio;
    chartObject.series.slice(1).forEach((line, k) => {
      if (!line.show) return;
      pen.fillStyle = typeof line.stroke === "function" ? line.stroke(chartObject, k + 1) : line.stroke;
      pen.fillRect(x, y + 41 * ratio, 10 * ratio, 3 * ratio);
      pen.fillStyle = colour("soft");
      const { name } = graph.lines[k];
      pen.fillText(name, x + 15 * ratio, y + 46 * ratio);
      x += 31 * ratio + pen.measureText(name).width;
    });
    // uPlot draws at once what is batched; then it has its place in the page again.
    const { width, height } = chartObject;
    chartObject.batch(() => chartObject.setSize({ width: wide, height: high }));
    pen.drawImage(chartObject.ctx.canvas, edge * ratio, y + heads * ratio);
    chartObject.batch(() => chartObject.setSize({ width, height }));
  });
  return canvas;
}
