// A page moves between two servers of a cluster. NETLOOP_TRAVEL has the addresses of their pages, and
// that of tickets, and of inspectors.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { contrasts } from "./contrast.mjs";
import { browser } from "./page.mjs";
import { until } from "./server.mjs";

const { pages, tickets, inspectors } = JSON.parse(process.env.NETLOOP_TRAVEL);

let chromium;
before(async () => { chromium = await browser(); });
after(() => chromium.close());

/** ticket reserves a seat of a room by a server. */
async function ticket(from, room) {
  const answer = await fetch(`${tickets}?from=${from}&room=${room}`);
  const text = await answer.text();
  assert.ok(answer.ok, text);
  return text;
}

/** open opens the page of server a over a transport, and waits until its client plays. */
async function open(over) {
  const page = await chromium.newPage();
  page.wrong = [];
  page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") page.wrong.push(m.text()); });
  page.on("pageerror", (e) => page.wrong.push(String(e)));
  await page.goto(`${pages.a}?room=a&over=${over}`);
  await plays(page, "a");
  return page;
}

/** plays waits until the client of a page plays in a room. */
const plays = (page, room) => until(`the client plays in ${room}`, () => page.evaluate((room) => {
  const c = globalThis.client;
  return c?.status.phase === "playing" && c.room === room && globalThis.sign() === room;
}, room));

for (const over of ["webtransport", "websocket"]) {
  test(`over ${over} a page moves to another server and back, without a break`, async () => {
    const page = await open(over);
    const at = await page.evaluate(() => globalThis.client.info.address);
    for (const [from, room] of [["a", "b"], ["b", "a"], ["a", "b"]]) {
      await page.evaluate(() => { globalThis.phases.length = 0; });
      assert.ok(await page.evaluate((t) => globalThis.client.move(t), await ticket(from, room)));
      await plays(page, room);
      assert.deepEqual(await page.evaluate(() => globalThis.phases), ["moving", "loading", "playing"]);
    }
    const { transport, stats, info } = await page.evaluate(() => {
      const { transport, stats, info } = globalThis.client;
      return { transport, stats, info };
    });
    assert.deepEqual([transport, stats.drops, stats.malformed, stats.errors], [over, 0, 0, 0]);
    if (over === "webtransport") assert.notEqual(info.address, at);
    // The second server is its home: a broken connection is replaced there, and the seat resumed.
    await page.evaluate(() => globalThis.client.cut());
    await until("it is back", () => page.evaluate(() => globalThis.client.stats.resumes === 1));
    await plays(page, "b");
    assert.deepEqual(page.wrong, []);
    await page.close();
  });
}

test("the inspector shows the servers, the rooms and the moves of the tests before", async () => {
  const page = await chromium.newPage({ viewport: { width: 1440, height: 900 } });
  page.wrong = [];
  page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") page.wrong.push(m.text()); });
  page.on("pageerror", (e) => page.wrong.push(String(e)));
  await page.goto(inspectors.a);
  await page.click("nav a[href='#cluster']");
  /** rows returns the cells of a table of the view. */
  const rows = (n) => page.evaluate((n) => [...document.querySelectorAll("main table")[n].tBodies[0].rows].map((r) => [...r.cells].map((c) => c.innerText)), n);
  await until("both servers are alive", () => page.evaluate(() => /names can be claimed · server a · 2 of 2 servers alive/.test(document.querySelector("main [role=status]").innerText)));
  assert.deepEqual((await rows(0)).map((r) => [r[0], r[1]]), [["a this one", "alive"], ["b", "alive"]]);
  await until("rooms of both servers", async () => (await rows(1)).map((r) => `${r[0]} ${r[4]} ${r[2]}`).sort().join() === "a this one open,b b open");
  await page.fill("main input[type=search]", "b");
  assert.equal((await rows(1)).length, 1);
  await page.fill("main input[type=search]", "");
  await page.click("main table tbody tr:nth-child(2)");
  assert.deepEqual((await rows(1)).map((r) => r[4]), ["b"]);
  await page.click("main table tbody tr:nth-child(2)");
  assert.equal((await rows(1)).length, 2);
  const moves = await rows(2);
  assert.ok(moves.some((r) => r[4] === "a here" && r[5] === "b on b" && r[2] === "arrived"), moves.join("\n"));
  assert.ok(moves.some((r) => r[4] === "b on b" && r[5] === "a here" && r[2] === "arrived"), moves.join("\n"));
  for (const theme of ["first", "other"]) {
    for (const width of [1440, 400, 360]) {
      await page.setViewportSize({ width, height: 900 });
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `wider than ${width} px`);
    }
    assert.deepEqual(await page.evaluate(contrasts), [], `contrast of the ${theme} theme`);
    await page.keyboard.press("t");
    await until("the view is back", async () => (await rows(0)).length === 2);
  }
  assert.deepEqual(page.wrong, []);
  await page.close();
});
