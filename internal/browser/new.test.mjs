// A game of "netloop new" in two tabs of a browser: its built server is NETLOOP_BIN/new/server.
import assert from "node:assert/strict";
import { test } from "node:test";

import { browser } from "./page.mjs";
import { Server, until } from "./server.mjs";

test("two tabs of a new game are two players", async () => {
  const server = await Server.start([], {}, "new/server");
  const chromium = await browser();
  try {
    const wrong = [];
    const open = async (name) => {
      const page = await chromium.newPage({ viewport: { width: 1100, height: 800 } });
      page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") wrong.push(m.text()); });
      page.on("pageerror", (e) => wrong.push(String(e)));
      page.on("request", (r) => { if (!r.url().startsWith(server.url)) wrong.push(r.url()); });
      await page.goto(`${server.url}?name=${name}`);
      return page;
    };
    const ada = await open("ada");
    const bob = await open("bob");
    for (const page of [ada, bob]) {
      await until("both players", async () => (await page.innerText("#scores")).match(/ada|bob/g)?.length === 2);
      await page.waitForFunction(() => /^2 ships, \d+ ms, by webtransport$/.test(document.getElementById("status").textContent));
    }
    // The shields of the start fade. After that the picture of bob is still, until ada flies.
    const picture = () => bob.evaluate(() => document.querySelector("canvas").toDataURL());
    let before;
    await until("bob's picture is still", async () => {
      await bob.waitForTimeout(300);
      const was = before;
      return was === (before = await picture());
    });
    await ada.bringToFront();
    for (const key of ["ArrowLeft", "ArrowRight"]) await ada.keyboard.press(key, { delay: 250 }); // One of them is no wall.
    await bob.bringToFront();
    await until("bob sees ada fly", async () => (await picture()) !== before);
    if (process.env.NETLOOP_PICTURE) await bob.screenshot({ path: process.env.NETLOOP_PICTURE });
    assert.deepEqual(wrong, []);
  } finally {
    await chromium.close();
    await server.stop();
  }
});
