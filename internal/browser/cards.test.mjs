// The card game in a real browser: from the lobby to a table, turns by click and key, spectators,
// returning players, and a restarted server.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, test } from "node:test";

import { browser } from "./page.mjs";
import { Server, until } from "./server.mjs";

/** Guest is a tab with the card game. */
class Guest {
  static async open(context, url, name) {
    const g = new Guest();
    g.errors = [];
    g.page = await context.newPage();
    g.page.on("pageerror", (e) => g.errors.push(String(e)));
    g.page.on("console", (m) => { if (m.type() === "error" && !/ERR_|WebSocket|WebTransport|Failed to load/.test(m.text())) g.errors.push(m.text()); });
    await g.page.goto(`${url}?name=${name}`);
    await g.shows("#lobby");
    return g;
  }

  shows(what) { return this.page.waitForSelector(`${what}:not([hidden])`, { timeout: 60_000 }); }

  /** ask runs fn in the page, with its session. */
  ask(fn) { return this.page.evaluate(`(${fn})(globalThis.cards)`); }

  hand() { return this.ask((s) => { const { all, own } = s.seats(); return own < 0 ? [] : [...all[own].Hand]; }); }

  says(pattern) { return until(`words like ${pattern}`, async () => pattern.test(await this.page.textContent("#event"))); }

  /** turn makes a turn, if it is the player's turn. */
  async turn() {
    if (!/Your turn/.test(await this.page.textContent("#event"))) return;
    const made = () => this.ask((s) => `${s.table().Round} ${s.table().Turns} ${s.table().Phase}`);
    const before = await made();
    if (await this.page.$("#hand .fits")) {
      const hit = await this.page.click("#hand .fits", { position: { x: 15, y: 60 }, timeout: 2000 }).then(() => true, () => false);
      if (!hit) return; // A new state has drawn the card anew: the next turn tries again.
    } else await this.page.keyboard.press("d");
    if (await this.page.isVisible("#suits")) await this.page.keyboard.press("h");
    await until("the turn is made", async () => (await made()) !== before);
  }
}

/** Starts with the file, so that its lobby is a minute old when the test below uses it. */
const elder = Server.start(["--cards.players", "2", "--cards.turn", "60s"], {}, "cards");
after(async () => (await elder).stop());

test("two play and one watches, a player returns, and the server restarts", async () => {
  const dir = mkdtempSync(path.join(tmpdir(), "netloop-cards-"));
  const flags = ["--cards.players", "2", "--cards.turn", "60s", "--cards.database", path.join(dir, "cards.db")];
  let server = await Server.start(flags, {}, "cards");
  const chromium = await browser();
  try {
    const context = await chromium.newContext();
    const [ann, bob, eve] = await Promise.all(["ann", "bob", "eve"].map((name) => Guest.open(context, server.url, name)));
    await ann.page.fill("#table-name", "oak");
    await ann.page.click("#open button");
    await ann.says(/Waiting for 1 more player/);
    await eve.page.click("#tables li button:text('Watch')");
    await eve.shows("#table");
    await bob.page.click("#tables li button:text('Sit down')");
    await bob.says(/Your turn|ann to play/);
    await ann.says(/Your turn|bob to play/);
    assert.equal((await ann.hand()).length, 5);
    await until("eve sees two hands from behind", () => eve.ask((s) => s.seats().all.length === 2 && s.seats().all.every((seat) => seat.Cards === 5 && seat.Hand.length === 0)));
    await ann.page.bringToFront();
    await until("turns are made", async () => {
      await ann.turn();
      await bob.turn();
      return eve.ask((s) => s.table().Turns >= 4 || s.table().Round > 1);
    });

    const held = await ann.hand();
    const kept = async () => { // With one more card if Ann is away for three seconds of her turn.
      const hand = await ann.hand();
      return hand.length <= held.length + 1 && held.every((card) => hand.includes(card));
    };
    await ann.page.keyboard.press("Escape");
    await ann.page.click("#tables li.own button:text('Go back')");
    await until("the cards are there again", kept);

    await server.stop();
    await ann.shows("#trouble");
    server = await Server.start(flags, server.ports, "cards");
    await until("the table goes on", async () => (await kept()) && !(await ann.page.isVisible("#trouble")));
    await until("eve watches the table again", () => eve.ask((s) => s.seats().all.length === 2 && s.seats().own < 0));
    for (const g of [ann, bob, eve]) assert.deepEqual(g.errors, []);
  } finally {
    await chromium.close();
    await server.stop();
    rmSync(dir, { recursive: true });
  }
});

test("between a lobby of a minute and a new table, the clock is that of the room", async () => {
  const server = await elder;
  const chromium = await browser();
  try {
    const context = await chromium.newContext();
    const [ann, bob] = await Promise.all(["ann", "bob"].map((name) => Guest.open(context, server.url, name)));
    /** age returns the game time of the room in seconds, once clock and state have the same tick. */
    const age = (g) => until("the clock is that of the room", () => g.ask((s) => {
      if (!s.client) return undefined; // It is on its way in.
      const { clock, stats, status } = s.client;
      return status.phase === "playing" && stats.appliedTick > 0 && Math.abs(clock.tick - stats.appliedTick) < 60 && clock.gameTime / 1000;
    }));
    // The lobby may be asleep, and then sends no state of a later tick.
    await until("the lobby is a minute old", () => ann.ask((s) => s.client?.status.phase === "playing" && s.client.clock.gameTime >= 60_000), 70_000);
    await ann.page.fill("#table-name", "elm");
    await ann.page.click("#open button");
    await ann.says(/Waiting for 1 more player/);
    assert.ok((await age(ann)) < 50, "the table is young");
    await bob.page.click("#tables li button:text('Sit down')");
    for (const g of [ann, bob]) {
      await g.says(/Your turn|to play/);
      const left = Number(/: (\d+) s/.exec(await g.page.textContent("#event"))[1]);
      assert.ok(left >= 40, `${left} s of 60 are left at the beginning of a turn`);
    }
    await ann.page.keyboard.press("Escape");
    await ann.shows("#lobby");
    assert.ok((await age(ann)) >= 60, "the lobby is old");
    for (const g of [ann, bob]) assert.deepEqual(g.errors, []);
  } finally {
    await chromium.close();
  }
});
