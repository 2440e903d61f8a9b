// Serves the page, the boards and Grafana's icons on loopback and hands /api on to Prometheus: one origin, no CORS.
import { createServer, request } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';

const HERE = import.meta.dirname;
const TYPES = {
  '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json', '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};
const WEIGHTS = { Regular: 400, Medium: 500 };
const PAGE = `<!doctype html><meta charset="utf-8"><title>board</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="/bundle/main.css"><body style="margin:0"><div id="root"></div>
<script type="module" src="/bundle/main.js"></script>`;

function folderOf(path) {
  if (path.startsWith('/bundle/')) return [HERE, path];
  if (path.startsWith('/boards/')) return [join(HERE, '..', 'ragtrace_dashboards', 'dist'), path.slice('/boards'.length)];
  // Icons: Grafana asks for public/build/img/... or public/img/...
  const icon = path.match(/^\/public\/(?:build\/)?(img\/.*)$/);
  if (icon) return [join(HERE, 'node_modules/@grafana/ui/dist/public'), icon[1]];
  const font = path.match(/^\/public\/fonts\/inter\/Inter-(\w+)\.woff2$/);
  return font && [join(HERE, 'node_modules/@fontsource/inter/files'), `inter-latin-${WEIGHTS[font[1]]}-normal.woff2`];
}

function forward(asked, answer, prometheus) {
  const url = new URL(asked.url, prometheus);
  const headers = { 'content-type': asked.headers['content-type'] ?? 'text/plain' };
  const onward = request(url, { method: asked.method, headers }, (reply) => {
    answer.writeHead(reply.statusCode, { 'content-type': reply.headers['content-type'] });
    reply.pipe(answer);
  });
  onward.on('error', (error) => answer.writeHead(502).end(String(error)));
  asked.pipe(onward);
}

async function file(path, answer) {
  const found = folderOf(normalize(path));
  try {
    const body = await readFile(join(...found));
    answer.writeHead(200, { 'content-type': TYPES[extname(path)] ?? 'application/octet-stream' }).end(body);
  } catch {
    answer.writeHead(404).end();
  }
}

export function serve(prometheus) {
  const server = createServer((asked, answer) => {
    const { pathname } = new URL(asked.url, 'http://localhost');
    if (pathname.startsWith('/api/')) forward(asked, answer, prometheus);
    else if (pathname === '/') answer.writeHead(200, { 'content-type': 'text/html' }).end(PAGE);
    else file(pathname, answer);
  });
  return new Promise((done) => server.listen(0, '127.0.0.1', () => done(server)));
}
