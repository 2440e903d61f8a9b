// Grafana's runtime reads its server's settings when it is imported; there is no server here.
window.grafanaBootData = { settings: { featureToggles: {} }, user: { theme: 'dark' }, navTree: [] };
window.__grafana_public_path__ = '/public/';
