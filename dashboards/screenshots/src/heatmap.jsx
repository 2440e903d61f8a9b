// Buckets over time as coloured cells: @grafana/ui has no heatmap, so this is near Grafana's panel and not it.
import { useEffect, useRef } from 'react';

const AXIS = 46;
const FOOT = 24;
// Dark end first, as Grafana's scheme Blues on its dark theme.
const DARK = [16, 42, 92];
const LIGHT = [222, 235, 247];

function cellsOf(frames) {
  const rows = frames
    .map(({ fields: [time, value] }) => ({ le: Number(value.labels.le.replace('+Inf', 'Infinity')), at: new Map(time.values.map((t, i) => [t, value.values[i]])) }))
    .sort((a, b) => a.le - b.le);
  if (rows.length === 0) return { rows, times: [], counts: [] };
  const times = [...new Set(rows.flatMap((row) => [...row.at.keys()]))].sort((a, b) => a - b);
  // Prometheus counts up to a bound; a cell shows what lies between two.
  const counts = rows.map((row, y) => times.map((t) => (row.at.get(t) ?? 0) - (y ? (rows[y - 1].at.get(t) ?? 0) : 0)));
  return { rows, times, counts };
}

export function Heatmap({ frames, width, height, timeRange, theme }) {
  const canvas = useRef(null);
  useEffect(() => {
    const { rows, times, counts } = cellsOf(frames);
    const pen = canvas.current.getContext('2d');
    const [from, to] = [timeRange.from.valueOf(), timeRange.to.valueOf()];
    const across = width - AXIS;
    const down = height - FOOT;
    const x = (t) => AXIS + ((t - from) / (to - from)) * across;
    const wide = times.length > 1 ? x(times[1]) - x(times[0]) : across;
    const high = down / rows.length;
    const most = Math.max(...counts.flat());
    pen.clearRect(0, 0, width, height);
    counts.forEach((line, y) =>
      line.forEach((count, at) => {
        if (count <= 0) return;
        const share = count / most;
        pen.fillStyle = `rgb(${DARK.map((dark, i) => Math.round(dark + share * (LIGHT[i] - dark))).join()})`;
        pen.fillRect(x(times[at]) - wide, down - (y + 1) * high, Math.max(wide - 1, 1), high - 1);
      })
    );
    pen.fillStyle = theme.colors.text.primary;
    pen.font = `12px ${theme.typography.fontFamily}`;
    pen.textAlign = 'right';
    pen.textBaseline = 'middle';
    const each = Math.ceil(rows.length / (down / 22));
    rows.forEach(({ le }, y) => y % each === 0 && pen.fillText(Number.isFinite(le) ? le : '+Inf', AXIS - 8, down - (y + 0.5) * high));
    pen.textAlign = 'center';
    for (let day = Math.ceil(from / 86_400_000) * 86_400_000; day < to; day += 86_400_000) {
      pen.fillText(new Date(day).toISOString().slice(5, 10).replace('-', '/'), x(day), down + 14);
    }
  });
  return <canvas ref={canvas} width={width} height={height} />;
}
