// node shoot.mjs PROMETHEUS_URL JOBS_JSON: draws each job {query, png, width, height} in headless Chromium.
import { chromium } from 'playwright-core';
import { serve } from './serve.mjs';

const [prometheus, jobs] = process.argv.slice(2);
const server = await serve(prometheus);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  for (const { query, png, width, height } of JSON.parse(jobs)) {
    const page = await browser.newPage({ viewport: { width, height }, timezoneId: 'UTC', locale: 'en-GB' });
    await page.clock.setFixedTime(1000 * new URLSearchParams(query).get('to')); // for "21 days ago"
    // A panel that fails leaves a picture with a hole: the run fails.
    const failed = (text) => {
      console.error(text.slice(0, 600));
      process.exitCode = 1;
    };
    page.on('pageerror', (error) => failed(error.stack ?? error.message));
    page.on('console', (said) => said.type() === 'error' && failed(said.text()));
    page.on('response', (reply) => reply.status() >= 400 && failed(`${reply.status()} ${reply.url()}`));
    await page.goto(`http://127.0.0.1:${server.address().port}/?${query}`);
    await page.waitForFunction(() => window.boardIsDrawn === true, null, { timeout: 300_000 });
    await page.screenshot({ path: png });
    await page.close();
  }
} finally {
  await browser.close();
  server.close();
}
