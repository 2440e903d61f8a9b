// Bundles src/main.jsx into bundle/: vite 6 fails on the router's alias, esbuild does not.
import { build } from 'esbuild';

await build({
  entryPoints: ['src/main.jsx'],
  bundle: true,
  outdir: 'bundle',
  format: 'esm',
  jsx: 'automatic',
  minify: true,
  define: { 'process.env.NODE_ENV': '"production"', global: 'globalThis' },
  alias: { 'react-router-dom-v5-compat': 'react-router-dom' },
  loader: { '.ttf': 'file', '.woff2': 'file', '.woff': 'file', '.svg': 'file', '.png': 'file' },
  logLevel: 'warning',
});
