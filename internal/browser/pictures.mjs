// Takes the pictures of the README: a screenshot of the arena with a player and bots in it, and a
// short animation of its flight.
//
//	NETLOOP_BIN=bin node internal/browser/pictures.mjs FOLDER
import { writeFileSync } from "node:fs";
import path from "node:path";
import gifenc from "gifenc";
import { PNG } from "pngjs";

import { browser } from "./page.mjs";
import { Server, bots } from "./server.mjs";

const [folder] = process.argv.slice(2);
const width = 1120;
const height = 630;
const frames = 36;
const frameMs = 110;

const server = await Server.start();
const noBots = bots(server, 60, 60);
const chromium = await browser();
const page = await chromium.newPage({ viewport: { width, height } });
await page.goto(server.url);
await page.waitForFunction(() => document.querySelectorAll("#scores li").length > 5, null, { timeout: 20_000 });
await page.fill("#name", "ada");
await page.click("#join button");
await page.waitForSelector("#me:not([hidden])");
await page.keyboard.down("ArrowUp");
await page.waitForTimeout(2500);

const taken = [];
let began = Date.now();
for (let i = 0; i < frames; i++) {
  if (i === 4) await page.keyboard.down("ArrowLeft");
  if (i === 11) await page.keyboard.up("ArrowLeft");
  if (i === 20) await page.keyboard.down("ArrowRight");
  if (i === 26) await page.keyboard.up("ArrowRight");
  if (i % 6 === 2) await page.keyboard.press("Space");
  taken.push(PNG.sync.read(await page.screenshot({ type: "png" })));
  await page.waitForTimeout(Math.max(0, began + (i + 1) * frameMs - Date.now()));
}
writeFileSync(path.join(folder, "arena.png"), await page.screenshot({ type: "png" }));
await chromium.close();
await noBots();
await server.stop();

// Half the size shows the motion with a quarter of the bytes. With one palette for all frames,
// unmoved pixels remain equal.
const small = taken.map((png) => halve(png));
const palette = gifenc.quantize(Buffer.concat(small.filter((_, i) => i % 6 === 0)), 96);
const gif = gifenc.GIFEncoder();
for (const [i, rgba] of small.entries()) {
  gif.writeFrame(gifenc.applyPalette(rgba, palette), width / 2, height / 2, { palette: i === 0 ? palette : undefined, delay: frameMs });
}
gif.finish();
writeFileSync(path.join(folder, "arena.gif"), gif.bytes());

function halve(png) {
  const out = Buffer.alloc((width / 2) * (height / 2) * 4);
  for (let y = 0; y < height / 2; y++) {
    for (let x = 0; x < width / 2; x++) {
      const from = (y * 2 * width + x * 2) * 4;
      for (let c = 0; c < 4; c++) {
        const sum = png.data[from + c] + png.data[from + 4 + c] + png.data[from + width * 4 + c] + png.data[from + width * 4 + 4 + c];
        out[(y * (width / 2) + x) * 4 + c] = sum >> 2;
      }
    }
  }
  return out;
}
