// One panel's data as Grafana draws it; the heatmap, which is no part of @grafana/ui, is drawn by ours.
import { VizOrientation, getFieldDisplayValues } from '@grafana/data';
import { BarGauge, BigValue, TimeSeries, VizRepeater } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { Heatmap } from './heatmap';

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

function Bars(props) {
  const { options } = props.panel;
  return (
    <Repeated {...props} orientation={options.orientation}>
      {({ value, width, height }) => (
        <BarGauge
          value={value.display}
          field={value.field}
          display={value.view?.getFieldDisplayProcessor(value.colIndex)}
          width={width}
          height={height}
          theme={props.theme}
          orientation={options.orientation}
          displayMode={options.displayMode}
          showUnfilled={options.showUnfilled}
          valueDisplayMode={options.valueMode}
          namePlacement="auto"
          itemSpacing={8}
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

export const KINDS = { stat: Stat, bargauge: Bars, timeseries: Series, table: Rows, heatmap: Heatmap };
