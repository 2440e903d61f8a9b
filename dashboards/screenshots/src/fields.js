// Field options (unit, limits, colours, thresholds, custom ones) and transformations, registered as Grafana's app does.
import {
  FieldConfigOptionsRegistry,
  applyFieldOverrides,
  cacheFieldDisplayNames,
  identityOverrideProcessor,
  standardTransformers,
  standardTransformersRegistry,
  transformDataFrame,
} from '@grafana/data';
import { firstValueFrom } from 'rxjs';

const STANDARD = ['unit', 'decimals', 'min', 'max', 'noValue', 'displayName', 'color', 'mappings', 'thresholds', 'links'];

standardTransformersRegistry.setInit(() =>
  [
    standardTransformers.mergeTransformer,
    standardTransformers.filterFieldsByNameTransformer,
    standardTransformers.organizeFieldsTransformer,
    standardTransformers.sortByTransformer,
  ].map((it) => ({
    id: it.id,
    name: it.name,
    transformation: () => it,
  }))
);

function registryOf(fieldConfig) {
  const custom = new Set(Object.keys(fieldConfig.defaults.custom ?? {}).map((key) => `custom.${key}`));
  for (const { properties } of fieldConfig.overrides) {
    for (const { id } of properties) if (id.startsWith('custom.')) custom.add(id);
  }
  const item = (id, path, isCustom) => ({
    id, path, isCustom, name: id, category: [], process: identityOverrideProcessor, shouldApply: () => true,
  });
  return new FieldConfigOptionsRegistry(() => [
    ...STANDARD.map((id) => item(id, id, false)),
    ...[...custom].map((id) => item(id, id.slice('custom.'.length), true)),
  ]);
}

export async function looked(panel, frames, theme) {
  const shown = await firstValueFrom(transformDataFrame(panel.transformations ?? [], frames, { interpolate: (text) => text }));
  const found = applyFieldOverrides({
    data: shown,
    fieldConfig: panel.fieldConfig,
    fieldConfigRegistry: registryOf(panel.fieldConfig),
    replaceVariables: (text) => text,
    theme,
    timeZone: 'utc',
  });
  cacheFieldDisplayNames(found);
  return found;
}
