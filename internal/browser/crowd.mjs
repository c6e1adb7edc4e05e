// Replays the packets of a client of 250 moving cubes in Chromium, and prints the times. There is no
// server.
//
//	node internal/browser/crowd.mjs SCRIPT PACKETS
import { readFileSync } from "node:fs";

import { browser } from "./page.mjs";

const [script, packets] = process.argv.slice(2);
const origin = "http://localhost"; // Where clocks are as fine as they are on a game's page.
const page_ = `<!doctype html><meta charset="utf-8"><title>crowd</title><script type="module" src="/script.js"></script>`;
const isolated = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" }; // for clocks of 5 µs
const chromium = await browser(["--js-flags=--expose-gc", "--enable-precise-memory-info"]);
try {
  const page = await chromium.newPage({ viewport: { width: 640, height: 360 } });
  await page.route(`${origin}/**`, (route) => {
    const { pathname } = new URL(route.request().url());
    if (pathname === "/script.js") return route.fulfill({ path: script, contentType: "text/javascript", headers: isolated });
    if (pathname === "/packets") return route.fulfill({ body: readFileSync(packets), contentType: "application/octet-stream", headers: isolated });
    return route.fulfill({ body: page_, contentType: "text/html", headers: isolated });
  });
  await page.goto(origin);
  await page.waitForFunction(() => globalThis.play);
  console.log(JSON.stringify(await page.evaluate(() => globalThis.play("/packets"))));
} finally {
  await chromium.close();
}
