// A tab of a real browser that shows the arena, and what a test asks of it.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

import { until } from "./server.mjs";

const program = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** browser starts one. */
export function browser(flags = []) {
  return chromium.launch({ executablePath: program, args: ["--no-sandbox", "--mute-audio", ...flags] });
}

/** What keeps a tab from one of the ways in. */
const without = {
  webtransport: () => { delete globalThis.WebSocket; },
  websocket: () => { delete globalThis.WebTransport; },
};

/** Tab is a page that shows the arena. */
export class Tab {
  /**
   * open opens the arena over a transport. info may change what the server says of itself; script may
   * change the page's program.
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

  /** position is where the player's ship is. */
  position() {
    return this.ask((game) => ({ x: game.own.state.X, y: game.own.state.Y }));
  }

  /**
   * obeys holds a key down and tells whether the ship has gone far from a position. Other tests take the
   * focus, and a page that loses it lets all keys go: so it takes it anew each time.
   */
  async obeys(key, from) {
    await this.page.bringToFront();
    await this.page.keyboard.down(key);
    return this.ask((game, was) => game.own && Math.hypot(game.own.state.X - was.x, game.own.state.Y - was.y) > 40, from);
  }

  /** phase is where the client is in its life. */
  phase() {
    return this.ask((game) => game?.client.status.phase ?? "none");
  }

  /**
   * watching waits until the arena is shown. A server lets nobody in while its machine is so busy that
   * it is late: then the page offers to try again, which a player does, too.
   */
  async watching() {
    await until("the arena is shown", async () => {
      if (await this.page.isVisible("#trouble-again")) await this.page.click("#trouble-again");
      return (await this.phase()) === "playing";
    }, 40_000);
    assert.equal(await this.ask((game) => game.client.transport), this.transport);
  }

  /** fly takes a ship. */
  async fly(name) {
    await this.watching();
    await this.page.fill("#name", name);
    await this.page.click("#join button");
    await this.page.waitForSelector("#me:not([hidden])", { timeout: 20_000 });
    await until("the player's ship is there", () => this.ask((game) => game.own !== undefined));
  }

  /** trouble waits for words of trouble that match. Those of a busy server it tries to get past. */
  async trouble(pattern, again = false) {
    const text = await until(`trouble like ${pattern}`, async () => {
      const shown = await this.page.evaluate(() => {
        const e = document.getElementById("trouble");
        return e.hidden ? "" : e.innerText;
      });
      if (pattern.test(shown)) return shown;
      if (again && shown.includes("Try again")) await this.page.click("#trouble-again");
      return undefined;
    }, 40_000);
    return text;
  }

  /** clean checks that nothing went wrong that the page does not say, and ends the tab. */
  async clean(allowed = []) {
    const wrong = this.errors.filter((e) => !allowed.some((a) => a.test(e)));
    assert.deepEqual(wrong, [], "the browser's console");
    assert.deepEqual(this.foreign, [], "what was loaded from elsewhere");
    await this.page.close();
  }
}
