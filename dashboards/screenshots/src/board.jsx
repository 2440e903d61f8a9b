// The grid of a board: 24 columns, rows of 30 pixels and 8 between, as in Grafana; collapsed rows stay so.
import { PanelChrome } from '@grafana/ui';
import { useEffect, useState } from 'react';
import { framesOf } from './data';
import { looked } from './fields';
import { KINDS } from './panels';
import { filled } from './variables';

const GAP = 8;
const ROW = 30;
const COLUMNS = 24;

export function placed(board, variables) {
  return board.panels.map((panel) => ({ panel, place: panel.gridPos, variables }));
}

export function heightOf(cells) {
  return Math.max(...cells.map(({ place }) => (place.y + place.h) * (ROW + GAP)));
}

export function Board({ cells, width, ...props }) {
  const column = (width - GAP * (COLUMNS - 1)) / COLUMNS;
  return (
    <div style={{ position: 'relative', height: heightOf(cells) }}>
      {cells.map(({ panel, place, variables }, at) => {
        const box = {
          left: place.x * (column + GAP),
          top: place.y * (ROW + GAP),
          width: place.w * (column + GAP) - GAP,
          height: place.h * (ROW + GAP) - GAP,
        };
        return (
          <div key={at} style={{ position: 'absolute', ...box }}>
            {panel.type === 'row' ? (
              <Heading row={panel} title={shown(panel.title, variables)} theme={props.theme} />
            ) : (
              <Cell panel={panel} variables={variables} box={box} {...props} />
            )}
          </div>
        );
      })}
    </div>
  );
}

const shown = (text, variables) =>
  text.replace(/\$(\w+)/g, (whole, name) => variables[name]?.shown ?? whole);

function Heading({ row, title, theme }) {
  const hidden = row.collapsed ? ` (${row.panels.length} panels)` : '';
  return <div style={{ ...theme.typography.h6, padding: '5px 0' }}>{row.collapsed ? '›' : '⌄'} {title}{hidden}</div>;
}

function Cell({ panel, variables, box, time, timeRange, theme, onDrawn }) {
  const [frames, setFrames] = useState(null);
  useEffect(() => {
    framesOf(panel, { variables, time, width: box.width })
      .then((found) => looked(panel, found, theme))
      .catch((error) => console.error(panel.title, error))
      .then((found) => setFrames(found ?? []));
  }, []);
  useEffect(() => {
    if (frames) onDrawn();
  }, [frames]);
  const Kind = KINDS[panel.type];
  const isEmpty = panel.type !== 'text' && frames !== null && !frames.some((frame) => frame.length > 0);
  return (
    <PanelChrome title={shown(panel.title, variables)} description={panel.description} width={box.width} height={box.height}>
      {(width, height) =>
        isEmpty ? (
          <Nothing text={panel.fieldConfig.defaults.noValue} height={height} theme={theme} />
        ) : (
          frames && <Kind panel={panel} frames={frames} width={width} height={height} timeRange={timeRange} theme={theme} variables={variables} />
        )
      }
    </PanelChrome>
  );
}

function Nothing({ text, height, theme }) {
  const look = { alignItems: 'center', color: theme.colors.text.secondary, display: 'flex', height, justifyContent: 'center' };
  return <div style={look}>{text}</div>;
}
