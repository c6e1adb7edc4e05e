// The arena in a real browser, over both transports.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import { Tab, browser, clicks } from "./page.mjs";
import { Server, bots, tcpRelay, udpRelay, until } from "./server.mjs";
import { Project, freePort } from "./vite.mjs";

let chromium;
before(async () => { chromium = await browser(); });
after(() => chromium.close());

/** through changes the addresses of connect.json to those of a relay. */
const through = {
  webtransport: (relay) => () => ({ address: `127.0.0.1:${relay.port}`, webSocket: undefined }),
  websocket: (relay) => (was) => ({ webSocket: was.webSocket.replace(/:\d+\//, `:${relay.port}/`) }),
};

describe("the arena", { concurrency: 1 }, () => {
  test("the name panel of a narrow screen has one line and does not cover the map, and the network graph fits", async () => {
    const server = await Server.start();
    try {
      for (const width of [320, 390]) {
        const context = await chromium.newContext({ viewport: { width, height: 844 } });
        const tab = await Tab.open(context, server.url, "webtransport");
        await tab.fly("WWWWWWWWWWWWWWWWWWWWWWWW");
        const { panel, line, map } = await tab.page.evaluate(() => {
          const box = (id) => document.getElementById(id).getBoundingClientRect();
          return { panel: box("me"), line: box("me-name").height, map: innerWidth - 16 - Math.max(84, 0.22 * innerWidth) };
        });
        assert.ok(panel.left >= 0 && panel.right < map, `at ${width} px the panel ends at ${panel.right}, and the map begins at ${map}`);
        assert.ok(panel.height < 2 * line, `at ${width} px it is ${panel.height} px high, with lines of ${line} px`);
        await tab.page.keyboard.press("F3");
        const graph = () => tab.page.evaluate(() => {
          const canvas = document.querySelector(".netgraph");
          const { left, right, top, bottom } = canvas.getBoundingClientRect();
          const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
          copy.drawImage(canvas, 0, 0);
          const bytes = copy.getImageData(0, 0, canvas.width, canvas.height).data;
          return {
            shown: canvas.checkVisibility(), inside: left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight,
            painted: bytes.filter((b, i) => i % 4 === 3 && b > 0).length,
          };
        });
        await until("the graph of the connection is drawn", async () => (await graph()).painted > 1000);
        assert.ok((await graph()).shown && (await graph()).inside, `at ${width} px the graph is in the window`);
        await tab.page.keyboard.press("F3");
        assert.ok(!(await graph()).shown);
        await tab.clean();
        await context.close();
      }
    } finally {
      await server.stop();
    }
  });

  for (const transport of ["webtransport", "websocket"]) {
    describe(`over ${transport}`, { concurrency: 3 }, () => {
      // The page's own part is the same over both transports, and is tested over one.
      const once = transport === "webtransport" ? test : () => {};

      test("joins, moves, sees others, chats, and has the server's state", async () => {
        const server = await Server.start();
        const context = await chromium.newContext();
        const noBots = bots(server, 8, 60);
        try {
          const ann = await Tab.open(context, server.url, transport);
          const bob = await Tab.open(context, server.url, transport);
          await ann.fly("ann");
          await bob.fly("bob");
          await until("all ships are seen", () => ann.ask((game) => game.ships.size >= 10));

          const from = await ann.position();
          await until("the server has moved the ship", () => ann.obeys("ArrowUp", from));
          await ann.page.keyboard.press("Space");
          await ann.page.keyboard.up("ArrowUp");
          const id = await ann.ask((game) => game.own.id);
          assert.equal(await bob.ask((game, id) => game.ships.get(id).state.Name, id), "ann");

          await ann.page.keyboard.press("Enter");
          await ann.page.keyboard.type("hello <b>bob</b>");
          await ann.page.keyboard.press("Enter");
          await until("bob reads it", () => bob.page.evaluate(() => /ann\s*hello <b>bob<\/b>/.test(document.querySelector("#chat").innerText)));

          for (const tab of [ann, bob]) {
            await tab.page.bringToFront();
            await until("it has flown for half a second", () => tab.ask((game) => game.client.stats.inputs > 30));
            await tab.verify();
            assert.deepEqual(await tab.ask((game) => [game.client.stats.malformed, game.client.stats.errors]), [0, 0]);
            await tab.clean();
          }
        } finally {
          await noBots();
          await context.close();
          await server.stop();
        }
      });

      once("shows a kick, and can join again", async () => {
        const server = await Server.start(["--client-kick", "20"]);
        const context = await chromium.newContext();
        try {
          const tab = await Tab.open(context, server.url, transport);
          await tab.fly("loud");
          await tab.ask((game) => { for (let i = 0; i < 200; i++) game.say(`line ${i}`); });
          await tab.trouble(/hung up/);
          await tab.page.click("#trouble-again");
          await tab.watching();
          await tab.clean([/closed|failed|error/i]);
        } finally {
          await context.close();
          await server.stop();
        }
      });

      test("shows a lost network, and resumes its ship", async () => {
        const server = await Server.start(["--keep-dropped", "2m"]); // A busy machine takes its time.
        const relay = transport === "webtransport" ? await udpRelay(server.ports.listen) : await tcpRelay(server.ports.web);
        const context = await chromium.newContext({ bypassCSP: true }); // The server does not know of the relay.
        try {
          const tab = await Tab.open(context, server.url, transport, { info: through[transport](relay) });
          await tab.fly("lost");
          const was = await tab.ask((game) => ({ id: game.client.id, ship: game.own.id }));
          relay.hole = true;
          await tab.trouble(/connection is lost/);
          relay.hole = false;
          await until("it is back", async () => (await tab.phase()) === "playing");
          assert.deepEqual(await tab.ask((game) => ({ id: game.client.id, ship: game.own?.id })), was);
          assert.equal(await tab.ask((game) => game.client.stats.resumes), 1);
          await until("nothing is wrong any more", () => tab.page.evaluate(() => document.getElementById("trouble").hidden));
          await tab.verify();
          await tab.clean([/closed|failed|error|lost|timed/i]);
        } finally {
          relay.close();
          await context.close();
          await server.stop();
        }
      });

      once("pauses in the background for 20 s, and continues", async () => {
        const server = await Server.start();
        const context = await chromium.newContext();
        const noBots = bots(server, 4, 60);
        try {
          const tab = await Tab.open(context, server.url, transport);
          await tab.fly("idle");
          const control = await context.newCDPSession(tab.page);
          await control.send("Page.setWebLifecycleState", { state: "frozen" });
          await pause(20_000);
          await control.send("Page.setWebLifecycleState", { state: "active" });
          await tab.page.bringToFront();
          await until("it plays again, at the state of now", () => tab.ask((game) => game?.client.status.phase === "playing" && game.own !== undefined && game.client.stats.ageMs < 500));
          const from = await tab.position();
          await until("the ship obeys", () => tab.obeys("ArrowUp", from));
          await tab.verify();
          await tab.clean([/closed|failed|error|lost|timed/i]);
        } finally {
          await noBots();
          await context.close();
          await server.stop();
        }
      });

      once("shows that the server has closed, and joins the next one", async () => {
        let server = await Server.start(["--drain", "1s"]);
        const context = await chromium.newContext();
        try {
          const tab = await Tab.open(context, server.url, transport);
          await tab.fly("patient");
          await server.stop();
          await tab.trouble(/closing|lost/);
          server = await Server.start([], { web: server.ports.web }); // Its game is on another port.
          await tab.watching();
          await tab.clean([/closed|failed|error|lost|timed|refused/i]);
        } finally {
          await context.close();
          await server.stop();
        }
      });

      once("shows the reason when it cannot join", async () => {
        const server = await Server.start();
        const context = await chromium.newContext({ bypassCSP: true }); // Some of it is said to be elsewhere.
        try {
          const old = await Tab.open(context, server.url, transport, { script: (s) => s.replace(/major:1\b/, "major:2") });
          await old.trouble(/does not fit the server|older than the server/, true);
          const nobody = await Tab.open(context, server.url, transport, {
            info: () => ({ address: "127.0.0.1:9", webSocket: "ws://127.0.0.1:9/netloop" }),
          });
          await nobody.trouble(/cannot be reached|does not answer/, true);
          if (transport === "webtransport") {
            const hash = await Tab.open(context, server.url, transport, {
              info: () => ({ certificateHashes: [Buffer.alloc(32).toString("base64")], webSocket: undefined }),
            });
            await hash.trouble(/cannot be reached|does not answer/, true);
          }
        } finally {
          await context.close();
          await server.stop();
        }
      });
    });
  }
});

test("two tabs wait in the lobby of a tournament, duel, and see the result and the expected wait", async () => {
  const points = mkdtempSync(path.join(tmpdir(), "netloop-points-"));
  const server = await Server.start(["--arena.duel", "4s", "--arena.saves", points], {}, "tournament");
  const context = await chromium.newContext({ viewport: { width: 1100, height: 800 } });
  try {
    const tabs = [];
    const shows = (tab, id, like) => until(`${id} is ${like}`, async () => like.test(await tab.page.innerText(id)));
    for (const name of ["ada", "bob"]) {
      const tab = await Tab.open(context, server.url, "webtransport");
      tabs.push(tab);
      await tab.watching();
      await shows(tab, "#intro-text", /^Press any key to join the tournament$/);
      await tab.page.fill("#name", name);
      await clicks(tab.page, "#join button", async () => !(await tab.page.isVisible("#join")));
      if (tabs.length === 1) await shows(tab, "#intro-text", /^Waiting for a duel$/);
    }
    for (const tab of tabs) await shows(tab, "#duel", /^(ada|bob) 0 : (ada|bob) 0 · [1-4] s$/);
    for (const tab of tabs) await shows(tab, "#duel", /^A draw · (ada|bob) 0 : (ada|bob) 0$/);
    await tabs[0].page.close();
    await shows(tabs[1], "#intro-text", /^Waiting for a duel, (about \d+ s|any moment)$/);
    assert.equal(await tabs[1].page.isVisible("#join"), false);
    await tabs[1].clean();
  } finally {
    await context.close();
    await server.stop();
    rmSync(points, { recursive: true });
  }
});

test("dots in Phaser plays, built by Vite with the client of the packed file", async (t) => {
  const project = await Project.make();
  if (!project) return t.skip("needs vite and phaser of node_modules");
  const port = await freePort();
  const server = await Server.start(["--origin", `http://127.0.0.1:${port}`], {}, "dots");
  const context = await chromium.newContext({ viewport: { width: 900, height: 900 } });
  try {
    assert.deepEqual(readdirSync(project.client).sort(), ["LICENSE", "README.md", "dist", "package.json"]);
    await project.serve(port, server.url);
    const page = await context.newPage();
    const errors = [];
    page.on("console", (m) => { if (m.type() === "error") errors.push(m.text()); });
    page.on("pageerror", (e) => errors.push(String(e)));
    await page.goto(`http://127.0.0.1:${port}/`);
    const own = () => page.evaluate(() => [...(globalThis.dots?.client.class("dot").owned() ?? [])].map((dot) => dot.state)[0]);
    const from = await until("the dot is there", own);
    const [key, right] = from.X < 50 ? ["ArrowRight", 1] : ["ArrowLeft", -1];
    await page.keyboard.down(key);
    await until("it moves", async () => ((await own()).X - from.X) * right > 10);
    await page.keyboard.up(key);
    const drawn = await page.evaluate(() => globalThis.dots.game.scene.getScene("field").children.list.map((o) => o.type));
    assert.deepEqual(drawn.sort(), ["Arc", "Container", "Grid", "Text"], "a coin, the dot, the field and the hint");
    if (process.env.NETLOOP_PICTURE) await page.screenshot({ path: process.env.NETLOOP_PICTURE });
    assert.deepEqual(errors, []);
  } finally {
    await context.close();
    await server.stop();
    await project.remove();
  }
});
