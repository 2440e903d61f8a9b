// Grafana's template variables of a board, with the values that the address chooses (var-metric=a,b).
const ALL = '$__all';

export async function variablesOf(board, ask, address) {
  const found = {};
  for (const it of board.templating.list) {
    if (it.type === 'datasource') continue;
    const chosen = address.get(`var-${it.name}`)?.split(',') ?? [].concat(it.current?.value ?? ALL);
    const options = it.type === 'query' ? await valuesOf(it, found, ask) : [];
    const isAll = chosen[0] === ALL;
    found[it.name] = {
      label: it.label,
      // Grafana writes several chosen values as (a|b) into a PromQL matcher.
      text: isAll ? it.allValue : chosen.length > 1 ? `(${chosen.join('|')})` : chosen[0],
      shown: isAll ? 'All' : (it.current?.value === chosen[0] ? it.current.text : chosen.join(' + ')),
      values: isAll ? options : chosen,
    };
  }
  return found;
}

async function valuesOf(it, known, ask) {
  const [, series, label] = it.query.query.match(/^label_values\((.*),\s*([$\w]+)\)$/);
  const name = filled(label, known);
  const rows = await ask(`count by (${name}) (last_over_time(${filled(series, known)}[1d]))`);
  const only = it.regex ? new RegExp(it.regex.replace(/^\/|\/$/g, '')) : /./;
  return rows.map((row) => row.metric[name] ?? '').filter((value) => value && only.test(value)).sort();
}

export function filled(text, variables, extra = {}) {
  return text.replace(/\$(?:\{(\w+)(?::\w+)?\}|(\w+))/g, (whole, braced, plain) => {
    const name = braced ?? plain;
    return extra[name] ?? variables[name]?.text ?? whole;
  });
}
