// The games of "netloop new" in two tabs of a browser each. The folder NETLOOP_BIN/new has them, and a
// program games, which serves the presets blank and cards.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import { admitted, browser, clicks } from "./page.mjs";
import { bin, Server, until } from "./server.mjs";

// On a busy machine the page tries WebSocket as well, and Chromium reports that attempt's end.
const second = /WebSocket is closed before the connection is established/;

let chromium;
before(async () => { chromium = await browser(); });
after(() => chromium?.close());

/**
 * play opens a tab for each name, runs fn once all show the text ready, and checks that no tab has an
 * error or asks another host.
 */
async function play(server, names, ready, fn) {
  const wrong = [];
  const context = await chromium.newContext({ viewport: { width: 1100, height: 800 } });
  try {
    const tabs = [];
    for (const name of names) {
      const page = await context.newPage();
      const said = [];
      page.on("console", (m) => { if ((m.type() === "error" || m.type() === "warning") && !second.test(m.text())) said.push(m.text()); });
      page.on("pageerror", (e) => said.push(String(e)));
      page.on("request", (r) => { if (!r.url().startsWith(server.url)) wrong.push(r.url()); });
      await page.goto(name ? `${server.url}?name=${name}` : server.url);
      if ((await admitted(page, ready)) > 0) said.length = 0; // Chromium reports refused connections.
      tabs.push(page);
      wrong.push(said);
    }
    await fn(...tabs);
    if (process.env.NETLOOP_PICTURE) await tabs.at(-1).screenshot({ path: process.env.NETLOOP_PICTURE });
  } finally {
    await context.close();
    await server.stop();
  }
  assert.deepEqual(wrong.flat(), []);
}

/** seesMove checks that a still canvas changes when another tab presses keys. */
async function seesMove(watcher, mover, keys) {
  const picture = () => watcher.evaluate(() => document.querySelector("canvas").toDataURL());
  let last;
  await until("the picture is still", async () => {
    await watcher.waitForTimeout(300);
    const was = last;
    return was === (last = await picture());
  });
  await mover.bringToFront();
  for (const key of keys) await mover.keyboard.press(key, { delay: 250 }); // One of them is no wall.
  await watcher.bringToFront();
  await until("the other player moves", async () => (await picture()) !== last);
}

/** status waits for the text of the element status. */
function status(page, pattern) {
  return page.waitForFunction((like) => new RegExp(like).test(document.getElementById("status").textContent), pattern);
}

test("blank: two tabs are two players", async () => {
  await play(await Server.start([], {}, ["new/games", "blank"]), ["", ""], /players?, by webtransport/, async (ada, bob) => {
    for (const page of [ada, bob]) await status(page, "^2 players, by webtransport$");
    await seesMove(bob, ada, ["ArrowLeft", "ArrowRight", "ArrowUp"]);
  });
});

test("cards: two tabs meet at one table", async () => {
  const saves = mkdtempSync(path.join(tmpdir(), "netloop-saves-"));
  await play(await Server.start(["--cards.saves", saves], {}, ["new/games", "cards"]), ["ada", "bob"], /Sit down at a table/, async (ada, bob) => {
    for (const page of [ada, bob]) {
      await page.bringToFront();
      await clicks(page, "#any", () => page.isVisible("#table"));
    }
    for (const page of [ada, bob]) {
      await until("a hand of five cards", async () => (await page.locator("#hand .card").count()) === 5);
      assert.match(await page.innerText("#seats"), /ada · 0[^]*bob · 0|bob · 0[^]*ada · 0/);
    }
    const played = []; // Each has a turn in the first trick.
    await until("both have played a card", async () => {
      for (const page of [ada, bob]) {
        const fits = page.locator("#hand .fits");
        if (played.includes(page) || (await fits.count()) === 0) continue;
        await page.bringToFront();
        await fits.first().click({ timeout: 2000 }).then(() => played.push(page), () => {});
      }
      return played.length === 2;
    });
    for (const page of [ada, bob]) {
      await page.bringToFront();
      await until("the cards on the table", async () => (await page.locator("#hand .card").count()) === 4);
    }
    await ada.reload();
    await until("the hand after a reload", async () => (await ada.locator("#hand .card").count()) === 4);
  });
});

test("arena: make run, doctor, load and types, and two tabs are two players", async () => {
  const folder = path.join(bin, "new", "arena");
  const server = await Server.start([], {}, "", folder);
  const make = (...args) => promisify(execFile)("make", args, { cwd: folder });
  await play(server, ["ada", "bob"], /ships?, \d+ ms, by webtransport/, async (ada, bob) => {
    for (const page of [ada, bob]) {
      await until("both players", async () => (await page.innerText("#scores")).match(/ada|bob/g)?.length === 2);
      await status(page, "^2 ships, \\d+ ms, by webtransport$");
    }
    await seesMove(bob, ada, ["ArrowLeft", "ArrowRight"]); // The shields of the start have faded.
    const doctor = await make("doctor", `ARGS=--running ${server.at.admin}`);
    assert.match(doctor.stdout, /ship/);
    const load = await make("load", `ADDR=${server.at.listen}`, `ARGS=--admin http://${server.at.admin} --clients 5 --duration 2s`)
      .catch((e) => (/^exit status 99$/m.test(e.stderr) ? e : Promise.reject(e))); // Others delay the bots.
    assert.match(load.stdout, /5 wanted, 5 connected/);
  });
  await make("types");
  assert.match(readFileSync(path.join(folder, "game", "web", "schema.ts"), "utf8"), /Ship/);
});
