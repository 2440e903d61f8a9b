// Draws the element `.chart`: a mean over time, with its interval as a band. Colours come from the style sheet.
(() => {
  const drawn = new WeakMap();

  const colour = (element, name) => {
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    element.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };

  const lines = (data) => (chart) => {
    const { ctx, bbox } = chart;
    const line = (x0, y0, x1, y1, stroke, dash) => {
      ctx.save();
      ctx.strokeStyle = stroke;
      ctx.lineWidth = devicePixelRatio;
      ctx.setLineDash(dash.map((part) => part * devicePixelRatio));
      ctx.beginPath();
      ctx.moveTo(x0, y0);
      ctx.lineTo(x1, y1);
      ctx.stroke();
      ctx.restore();
    };
    if (data.threshold !== null) {
      const y = chart.valToPos(data.threshold, "y", true);
      line(bbox.left, y, bbox.left + bbox.width, y, colour(chart.root, "--muted"), [4, 4]);
    }
    if (data.since !== null) {
      const x = chart.valToPos(data.since, "x", true);
      line(x, bbox.top, x, bbox.top + bbox.height, colour(chart.root, "--bad"), [6, 3]);
    }
  };

  // Ticks in UTC, with the day where a chart spans several.
  const ticks = (chart, splits) => {
    const span = chart.scales.x.max - chart.scales.x.min;
    const form = span > 172800 ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit", hour12: false };
    if (span < 300) form.second = "2-digit";
    return splits.map((at) => new Date(at * 1000).toLocaleString("en-GB", { timeZone: "UTC", ...form }));
  };

  const moment = (_, at) => (at == null ? "–" : `${new Date(at * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`);

  const number = (_, value) => (value == null ? "–" : value.toFixed(2));

  const options = (element, data) => {
    const accent = colour(element, "--accent");
    const axis = { stroke: colour(element, "--muted"), grid: { stroke: colour(element, "--line"), width: 1 }, ticks: { show: false } };
    const hidden = { stroke: "transparent", points: { show: false } };
    return {
      width: element.clientWidth,
      height: 200,
      cursor: { drag: { x: false, y: false } },
      scales: { y: { range: (_, low, high) => bounds(data, low, high) } },
      bands: [{ series: [3, 2], fill: colour(element, "--band") }],
      axes: [{ ...axis, values: ticks, space: 70, size: 34 }, { ...axis, size: 46 }],
      series: [
        { label: "time", value: moment },
        { label: "mean", stroke: accent, width: 2, value: number, points: { size: 5, fill: accent } },
        { label: "from", value: number, ...hidden },
        { label: "to", value: number, ...hidden },
        { label: "scores", value: (_, value) => value ?? "–", scale: "count", ...hidden },
      ],
      hooks: {
        draw: [lines(data)],
        setCursor: [(chart) => chart.root.classList.toggle("idle", chart.cursor.idx == null)],
      },
    };
  };

  const bounds = (data, low, high) => {
    const ends = [low, high, data.threshold].filter((value) => value !== null && Number.isFinite(value));
    if (!ends.length) return [0, 1];
    const [least, most] = [Math.min(...ends), Math.max(...ends)];
    const room = Math.max((most - least) * 0.1, 0.02);
    return [Math.max(least - room, data.low ?? -Infinity), Math.min(most + room, data.high ?? Infinity)];
  };

  const draw = (element, isForced) => {
    const text = element.dataset.trend;
    const before = drawn.get(element);
    if (before && before.text === text && !isForced) return;
    before?.chart.destroy();
    const data = JSON.parse(text);
    const chart = new uPlot(options(element, data), [data.x, data.mean, data.lower, data.upper, data.n], element);
    chart.root.classList.add("idle");
    drawn.set(element, { chart, text });
  };

  const drawAll = (isForced) => document.querySelectorAll(".chart").forEach((element) => draw(element, isForced));

  const start = () => {
    drawAll(false);
    let pending = 0;
    const again = () => {
      clearTimeout(pending);
      pending = setTimeout(() => drawAll(true), 100);
    };
    addEventListener("resize", again);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    new MutationObserver(again).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    document.addEventListener("htmx:after:swap", () => drawAll(false));
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
