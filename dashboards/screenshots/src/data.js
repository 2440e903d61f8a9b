// Prometheus' answers as Grafana's data frames, named and shaped as its Prometheus data source does.
import { FieldType, createDataFrame } from '@grafana/data';
import { tracesOf } from './traces';
import { filled } from './variables';

const SCRAPE_S = 300; // the pictures' data have a sample every five minutes
const STEPS_S = [15, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

export async function ask(path, asked) {
  const reply = await fetch(`/api/v1/${path}`, { method: 'POST', body: new URLSearchParams(asked) });
  const body = await reply.json();
  if (body.status !== 'success') throw new Error(`${body.error} for ${asked.query}`);
  return body.data.result;
}

export function stepOf(panel, time, width) {
  const least = panel.interval ? durationS(panel.interval) : SCRAPE_S;
  const wanted = (time.to - time.from) / width;
  return Math.max(least, STEPS_S.find((step) => step >= wanted) ?? 86_400);
}

export async function framesOf(panel, { variables, time, width }) {
  if (panel.type === 'text') return [];
  if (panel.datasource.type === 'tempo') return tracesOf(panel, time);
  const step = stepOf(panel, time, width);
  const macros = {
    __interval: `${step}s`,
    __rate_interval: `${Math.max(step + SCRAPE_S, 4 * SCRAPE_S)}s`,
    __range: `${time.to - time.from}s`,
  };
  const asked = panel.targets.filter((target) => target.expr);
  const frames = await Promise.all(
    asked.map(async (target) => {
      const query = filled(target.expr, variables, macros);
      if (target.instant) {
        const rows = await ask('query', { query, time: time.to });
        return target.format === 'table' ? [tableOf(rows, target, asked.length > 1)] : rows.map((row) => single(row, named(row.metric, target, variables), target));
      }
      // Grafana aligns a range to its step.
      const start = Math.floor(time.from / step) * step;
      const series = await ask('query_range', { query, start, end: Math.floor(time.to / step) * step, step });
      return series.map((it) => overTime(it, named(it.metric, target, variables), target, step));
    })
  );
  return frames.flat();
}

function named(labels, target, variables) {
  if (target.legendFormat) return filled(target.legendFormat, variables).replace(/{{\s*(\w+)\s*}}/g, (_, name) => labels[name] ?? '');
  return Object.entries(labels).map(([key, value]) => `${key}="${value}"`).join(', ') || 'Value';
}

function overTime({ metric, values }, name, target, step) {
  const times = values.map(([at]) => at * 1000);
  return frame(metric, name, target, times, values.map(([, value]) => number(value)), step);
}

function single({ metric, value }, name, target) {
  return frame(metric, name, target, [value[0] * 1000], [number(value[1])]);
}

function frame(labels, name, target, times, values, step) {
  return createDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: times, config: step ? { interval: step * 1000 } : {} },
      { name: 'Value', type: FieldType.number, values, labels, config: { displayNameFromDS: name } },
    ],
  });
}

function tableOf(rows, target, isOneOfMany) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.metric)))].sort();
  return createDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: rows.map((row) => row.value[0] * 1000) },
      ...names.map((name) => ({ name, type: FieldType.string, values: rows.map((row) => row.metric[name] ?? '') })),
      {
        name: isOneOfMany ? `Value #${target.refId}` : 'Value',
        type: FieldType.number,
        values: rows.map((row) => number(row.value[1])),
      },
    ],
  });
}

const number = (text) => (text === 'NaN' ? null : Number(text));

function durationS(text) {
  const [, count, unit] = text.match(/^(\d+)([smhd])$/);
  return Number(count) * { s: 1, m: 60, h: 3600, d: 86_400 }[unit];
}
