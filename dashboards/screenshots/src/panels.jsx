// One panel's data as Grafana draws it; the heatmap, which is no part of @grafana/ui, is drawn by ours.
import { VizOrientation, getFieldDisplayValues, renderMarkdown } from '@grafana/data';
import { BigValue, TimeSeries, VizRepeater } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { Heatmap } from './heatmap';
import { filled } from './variables';

function valuesOf({ panel, frames, theme }) {
  return getFieldDisplayValues({
    data: frames,
    fieldConfig: panel.fieldConfig,
    reduceOptions: panel.options.reduceOptions,
    replaceVariables: (text) => text,
    theme,
    timeZone: 'utc',
  });
}

function Repeated({ children, orientation, ...props }) {
  const values = valuesOf(props);
  return (
    <VizRepeater
      getValues={() => values}
      renderValue={(it) => children({ ...it, count: values.length })}
      source={props.frames}
      renderCounter={1}
      width={props.width}
      height={props.height}
      orientation={orientation}
      itemSpacing={8}
    />
  );
}

function Stat(props) {
  const { options } = props.panel;
  return (
    <Repeated {...props} orientation={VizOrientation.Auto}>
      {({ value, width, height, count }) => (
        <BigValue
          value={value.display}
          count={count}
          width={width}
          height={height}
          theme={props.theme}
          colorMode={options.colorMode}
          graphMode={options.graphMode}
          textMode={options.textMode}
          justifyMode={options.justifyMode}
          disableWideLayout={!options.wideLayout}
        />
      )}
    </Repeated>
  );
}

function Series({ panel, frames, timeRange, width, height }) {
  return (
    <TimeSeries
      frames={frames}
      timeRange={timeRange}
      timeZone="utc"
      width={width}
      height={height}
      legend={panel.options.legend}
      tooltip={panel.options.tooltip}
      options={panel.options}
    />
  );
}

function Rows({ panel, frames, timeRange, width, height }) {
  return <TableNG data={frames[0]} width={width} height={height} cellHeight={panel.options.cellHeight} timeRange={timeRange} fieldConfig={panel.fieldConfig} structureRev={1} noHeader={false} getActions={() => []} transparent />;
}

function Text({ panel, variables }) {
  const html = renderMarkdown(filled(panel.options.content, variables));
  return (
    <div className="markdown-html">
      <style>{'code, pre { font-family: monospace !important }'}</style>
      <div dangerouslySetInnerHTML={{ __html: html }} />
    </div>
  );
}

export const KINDS = { stat: Stat, timeseries: Series, table: Rows, heatmap: Heatmap, text: Text };
