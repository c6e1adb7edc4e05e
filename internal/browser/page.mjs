// A tab of a real browser with the arena, for tests.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

import { chromium } from "playwright-core";

import { until } from "./server.mjs";

const program = process.env.CHROMIUM ?? ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"].find(existsSync);

/** browser starts a browser. */
export function browser(flags = []) {
  return chromium.launch({ executablePath: program, args: ["--no-sandbox", "--mute-audio", ...flags] });
}

/** Why a page of "netloop new" was not admitted by a server that is too slow for its ticks. */
const refusal = /try again later|does not answer|cannot be reached/;

/**
 * admitted waits until a page shows a text. A server that is too slow for its ticks refuses players for
 * some seconds: the page says so, and is loaded again. It returns how often.
 */
export async function admitted(page, ready) {
  let shown, loads = 0;
  await until(() => `${page.url()} shows ${ready} after ${loads} reloads, and not ${shown}`, async () => {
    shown = await page.innerText("body");
    if (!refusal.test(shown)) return ready.test(shown);
    await pause(1000);
    await page.reload();
    loads++;
  });
  return loads;
}

/**
 * clicks clicks an element, while it is shown, until a condition holds: a busy page may draw it anew,
 * and a busy server refuse the first call.
 */
export function clicks(page, selector, done) {
  return until(`${selector} is clicked with success`, async () => {
    if (await page.isVisible(selector)) await page.click(selector, { timeout: 2000 }).catch(() => {});
    return done();
  });
}

/** colorsOf returns the number of colors of a canvas. It runs in the page. */
export function colorsOf(selector) {
  const c = document.querySelector(selector);
  const data = new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer);
  return new Set(data).size;
}

/** Scripts that disable a transport in a tab. */
const without = {
  webtransport: () => { delete globalThis.WebSocket; },
  websocket: () => { delete globalThis.WebTransport; },
};

/** Tab is a page with the arena. */
export class Tab {
  /**
   * open opens the arena over a transport. info may change connect.json; script may change the page's
   * program.
   */
  static async open(context, url, transport, { info, script } = {}) {
    const tab = new Tab();
    tab.transport = transport;
    tab.errors = [];
    tab.foreign = [];
    tab.page = await context.newPage();
    await tab.page.addInitScript(without[transport]);
    tab.page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") tab.errors.push(m.text()); });
    tab.page.on("pageerror", (e) => tab.errors.push(String(e)));
    tab.page.on("request", (r) => { if (new URL(r.url()).origin !== new URL(url).origin) tab.foreign.push(r.url()); });
    if (info) {
      await tab.page.route("**/connect.json", async (route) => {
        const answer = await (await route.fetch()).json();
        await route.fulfill({ json: { ...answer, ...info(answer) } });
      });
    }
    if (script) {
      await tab.page.route("**/arena.js", async (route) => {
        const answer = await route.fetch();
        await route.fulfill({ response: answer, body: script(await answer.text()) });
      });
    }
    await tab.page.goto(url);
    return tab;
  }

  /** ask runs fn in the page, with the game. */
  ask(fn, arg) {
    return this.page.evaluate(`(${fn})(globalThis.arena.game, ${JSON.stringify(arg) ?? "undefined"})`);
  }

  /** position returns the position of the player's ship. */
  position() {
    return this.ask((game) => ({ x: game.own.state.X, y: game.own.state.Y }));
  }

  /**
   * obeys holds a key down and reports whether the ship has moved far from a position. Other tests take
   * the focus, and a page without it releases all keys, so obeys takes the focus each time.
   */
  async obeys(key, from) {
    await this.page.bringToFront();
    await this.page.keyboard.down(key);
    return this.ask((game, was) => game.own && Math.hypot(game.own.state.X - was.x, game.own.state.Y - was.y) > 40, from);
  }

  /** phase returns the client's phase. */
  phase() {
    return this.ask((game) => game?.client.status.phase ?? "none");
  }

  /**
   * watching waits until the arena is shown. An overloaded server refuses clients: then the page offers
   * another attempt, which watching makes.
   */
  async watching() {
    await until("the arena is shown", async () => {
      if (await this.page.isVisible("#trouble-again")) await this.page.click("#trouble-again");
      return (await this.phase()) === "playing";
    });
    assert.equal(await this.ask((game) => game.client.transport), this.transport);
  }

  /** fly enters with a ship. */
  async fly(name) {
    await this.watching();
    await this.page.fill("#name", name);
    await this.page.click("#join button");
    await this.page.waitForSelector("#me:not([hidden])", { timeout: 60_000 });
    await until("the player's ship is there", () => this.ask((game) => game.own !== undefined));
  }

  /** trouble waits for a matching error text. At a busy server it tries again. */
  async trouble(pattern, again = false) {
    const text = await until(`trouble like ${pattern}`, async () => {
      const shown = await this.page.evaluate(() => {
        const e = document.getElementById("trouble");
        return e.hidden ? "" : e.innerText;
      });
      if (pattern.test(shown)) return shown;
      if (again && shown.includes("Try again")) await this.page.click("#trouble-again");
      return undefined;
    });
    return text;
  }

  /**
   * verify compares the state with the server's. A tab that gets too little processor time loses packets,
   * and of a snapshot that misses one no digest can be compared: such a tab tries again.
   */
  async verify() {
    let stats;
    await until(() => `the state is compared with the server's: ${stats}`, async () => {
      await this.page.bringToFront();
      const done = await this.ask((game) => game.client.verify().then(() => "equal", (e) => e.message));
      if (!/in time/.test(done)) assert.equal(done, "equal");
      stats = await this.ask((game) => JSON.stringify(game.client.stats));
      return done === "equal";
    });
  }

  /** clean checks that the console has no unexpected error, and closes the tab. */
  async clean(allowed = []) {
    const wrong = this.errors.filter((e) => !allowed.some((a) => a.test(e)));
    assert.deepEqual(wrong, [], "the browser's console");
    assert.deepEqual(this.foreign, [], "requests to other hosts");
    await this.page.close();
  }
}
