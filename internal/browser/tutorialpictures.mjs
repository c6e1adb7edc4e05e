// Takes the pictures of docs/TUTORIAL.md: two players of part 2, a round of part 3, an arena of part 6 with
// bots, and the lobby with records.
//
//	NETLOOP_BIN=bin node internal/browser/tutorialpictures.mjs FOLDER
//
// bin has the programs tutorial and tutorial-bots.
import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

import { browser } from "./page.mjs";
import { bin, Server } from "./server.mjs";

const [folder] = process.argv.slice(2);
const chromium = await browser();

/** collect steers a dot to some coins for up to 20 s, by the colours of both on the canvas. */
async function collect(page, coins) {
  await page.bringToFront();
  for (let last, end = Date.now() + 20_000; coins >= 0 && Date.now() < end; ) {
    const { dot, coin } = await page.evaluate(() => {
      const { data, width } = document.querySelector("canvas").getContext("2d").getImageData(0, 0, 800, 800);
      const centre = (r, g, b) => {
        let n = 0, x = 0, y = 0;
        for (let i = 0; i < data.length; i += 4) {
          if (data[i] !== r || data[i + 1] !== g || data[i + 2] !== b) continue;
          n++;
          x += (i / 4) % width;
          y += Math.floor(i / 4 / width);
        }
        return n ? { x: x / n, y: y / n } : undefined;
      };
      return { dot: centre(0xff, 0x8a, 0x3d), coin: centre(0xf5, 0xc5, 0x42) };
    });
    if (!dot || !coin) continue;
    if (!last || Math.hypot(coin.x - last.x, coin.y - last.y) > 40) coins--;
    last = coin;
    for (const [key, is] of [["ArrowLeft", dot.x - coin.x], ["ArrowRight", coin.x - dot.x], ["ArrowUp", dot.y - coin.y], ["ArrowDown", coin.y - dot.y]]) {
      await (is > 8 ? page.keyboard.down(key) : page.keyboard.up(key));
    }
  }
  for (const key of ["Left", "Right", "Up", "Down"]) await page.keyboard.up(`Arrow${key}`);
}

for (const [part, picture] of [["2", "tutorial-prediction.png"], ["3", "tutorial-round.png"]]) {
  const server = await Server.start(["--simulate", "rtt=100ms"], {}, ["tutorial", part]);
  const [ada, bob] = [await chromium.newPage({ viewport: { width: 1120, height: 760 } }), await chromium.newPage()];
  await ada.goto(`${server.url}?name=ada`);
  await bob.goto(`${server.url}?name=bob`);
  await collect(bob, 2);
  await collect(ada, 3);
  await ada.waitForTimeout(500);
  await ada.screenshot({ path: path.join(folder, picture) });
  await ada.close();
  await bob.close();
  await server.stop();
}

const server = await Server.start(["--dots.records", mkdtempSync(path.join(tmpdir(), "netloop-records-"))], {}, ["tutorial", "6"]);
const bots = spawn(path.join(bin, "tutorial-bots"), ["run", "--addr", server.at.listen, "--clients", "15", "--duration", "100s"], { stdio: "ignore" });
const page = await chromium.newPage({ viewport: { width: 1120, height: 760 } });
await page.goto(`${server.url}?name=ada`);
await page.waitForFunction(() => document.querySelectorAll("#arenas li").length === 2);
await page.waitForTimeout(2000); // All bots are in an arena.
await page.click("#play");
await page.waitForFunction(() => document.querySelectorAll("#scores li").length > 5);
await page.keyboard.down("ArrowRight");
await page.waitForTimeout(400);
await page.keyboard.up("ArrowRight");
await page.waitForTimeout(12_000);
await page.screenshot({ path: path.join(folder, "tutorial-arena.png") });
await page.waitForFunction(() => document.getElementById("winner").textContent !== "", null, { timeout: 80_000 });
await page.click("#leave");
await page.waitForSelector("#best li");
await page.waitForTimeout(500);
await page.screenshot({ path: path.join(folder, "tutorial-lobby.png") });
bots.kill("SIGKILL");
await server.stop();
await chromium.close();
