// Draws one board: ?board=ragtrace-overview&to=UNIX_S&range=SECONDS&var-metric=a,b
import './boot';
import { ThemeContext, createTheme, dateTime } from '@grafana/data';
import { initPluginTranslations } from '@grafana/i18n';
import { GlobalStyles, PortalContainer } from '@grafana/ui';
import { createRoot } from 'react-dom/client';
import { MemoryRouter } from 'react-router-dom';
import { Board, placed } from './board';
import { ask } from './data';
import { variablesOf } from './variables';

const MARGIN = 16;
const address = new URLSearchParams(location.search);
const to = Number(address.get('to'));
const time = { from: to - Number(address.get('range') ?? 7 * 86_400), to };
const range = { from: dateTime(time.from * 1000).utc(), to: dateTime(to * 1000).utc() };
const timeRange = { ...range, raw: range };
const theme = createTheme({ colors: { mode: 'dark' } });

const BAR = 40; // Grafana's own header; below it stand the variables

function Head({ board, variables }) {
  const line = `1px solid ${theme.colors.border.weak}`;
  const box = {
    background: theme.colors.background.primary, border: `1px solid ${theme.colors.border.medium}`,
    borderRadius: 2, lineHeight: '22px', padding: '4px 10px', fontSize: 13,
  };
  return (
    <>
      <div style={{ alignItems: 'center', background: theme.colors.background.primary, borderBottom: line, display: 'flex', height: BAR, padding: `0 ${MARGIN}px` }}>
        <span style={{ color: theme.colors.text.secondary }}>Home › Dashboards › ragtrace ›&ensp;</span>{board.title}
      </div>
      <div style={{ display: 'flex', gap: 8, flexWrap: 'wrap', padding: `8px ${MARGIN}px` }}>
        {board.templating.list.filter((it) => it.type === 'datasource').map(({ label, query }) => (
          <span key={label} style={box}><b>{label}</b>&ensp;{query}</span>
        ))}
        {Object.values(variables).map(({ label, shown }) => (
          <span key={label} style={box}><b>{label}</b>&ensp;{shown}</span>
        ))}
        <span style={{ ...box, marginLeft: 'auto' }}>
          {range.from.format('YYYY-MM-DD HH:mm')} to {range.to.format('YYYY-MM-DD HH:mm')} UTC
        </span>
      </div>
    </>
  );
}

async function main() {
  await initPluginTranslations('grafana');
  const board = await (await fetch(`/boards/${address.get('board')}.json`)).json();
  const variables = await variablesOf(board, (query) => ask('query', { query, time: to }), address);
  const cells = placed(board, variables);
  let left = cells.filter(({ panel }) => panel.type !== 'row').length;
  const onDrawn = () => {
    left -= 1;
    if (left === 0) setTimeout(() => (window.boardIsDrawn = true), 1500); // uPlot and the legends settle
  };
  createRoot(document.getElementById('root')).render(
    <MemoryRouter>
      <ThemeContext.Provider value={theme}>
        <GlobalStyles hackNoBackdropBlur={true} />
        <div style={{ background: theme.colors.background.canvas }}>
          <Head board={board} variables={variables} />
          <div style={{ padding: `0 ${MARGIN}px` }}>
          <Board cells={cells} width={innerWidth - 2 * MARGIN} {...{ time, timeRange, theme, onDrawn }} />
          </div>
        </div>
        <PortalContainer />
      </ThemeContext.Provider>
    </MemoryRouter>
  );
}

main();
