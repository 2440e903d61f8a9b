// The grid of a board: 24 columns, rows of 30 pixels and 8 between, repeated panels three a line, as in Grafana.
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
  const found = [];
  let shift = 0;
  for (const panel of board.panels) {
    const place = { ...panel.gridPos, y: panel.gridPos.y + shift };
    if (!panel.repeat) {
      found.push({ panel, place, variables });
      continue;
    }
    const values = variables[panel.repeat].values;
    const each = Math.min(values.length, panel.maxPerRow);
    const width = COLUMNS / each;
    values.forEach((value, at) => {
      const own = { ...variables, [panel.repeat]: { text: value, shown: value, values: [value] } };
      const y = place.y + Math.floor(at / each) * place.h;
      found.push({ panel, place: { ...place, x: (at % each) * width, w: width, y }, variables: own });
    });
    shift += (Math.ceil(values.length / each) - 1) * place.h;
  }
  return found;
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
              <Heading title={shown(panel.title, variables)} theme={props.theme} />
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

function Heading({ title, theme }) {
  return <div style={{ ...theme.typography.h6, padding: '5px 0' }}>⌄ {title}</div>;
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
  const isEmpty = frames !== null && !frames.some((frame) => frame.length > 0);
  return (
    <PanelChrome title={shown(panel.title, variables)} description={panel.description} width={box.width} height={box.height}>
      {(width, height) =>
        isEmpty ? (
          <Nothing text={panel.fieldConfig.defaults.noValue} height={height} theme={theme} />
        ) : (
          frames && <Kind panel={panel} frames={frames} width={width} height={height} timeRange={timeRange} theme={theme} />
        )
      }
    </PanelChrome>
  );
}

function Nothing({ text, height, theme }) {
  const look = { alignItems: 'center', color: theme.colors.text.secondary, display: 'flex', height, justifyContent: 'center' };
  return <div style={look}>{text}</div>;
}
