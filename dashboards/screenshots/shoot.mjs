// node shoot.mjs PROMETHEUS_URL JOBS_JSON: draws each job {query, png, width, height} in headless Chromium.
import { chromium } from 'playwright-core';
import { serve } from './serve.mjs';

const [prometheus, jobs] = process.argv.slice(2);
const server = await serve(prometheus);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  for (const { query, png, width, height } of JSON.parse(jobs)) {
    const page = await browser.newPage({ viewport: { width, height: height ?? 1000 }, timezoneId: 'UTC', locale: 'en-GB' });
    page.on('pageerror', (error) => console.error('page error', error.stack ?? error.message));
    page.on('console', (said) => said.type() === 'error' && console.error('console', said.text().slice(0, 300)));
    page.on('response', (reply) => reply.status() >= 400 && console.error(reply.status(), reply.url().slice(0, 200)));
    await page.goto(`http://127.0.0.1:${server.address().port}/?${query}`);
    await page.waitForFunction(() => window.boardIsDrawn === true, null, { timeout: 60_000 });
    if (!height) {
      const full = await page.evaluate(() => document.getElementById('root').getBoundingClientRect().height);
      await page.setViewportSize({ width, height: Math.ceil(full) });
      await page.waitForTimeout(500);
    }
    await page.screenshot({ path: png });
    await page.close();
  }
} finally {
  await browser.close();
  server.close();
}
