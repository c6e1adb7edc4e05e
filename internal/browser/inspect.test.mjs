// The inspector in a real browser: its values, faults found by clicking, access, and its cost.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect as dial } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import { connect } from "../../clients/ts/dist/netloop.js";
import { contrasts } from "./contrast.mjs";
import { browser, colorsOf } from "./page.mjs";
import { Server, allBots, bots, tcpRelay, until } from "./server.mjs";

const views = ["overview", "ticks", "loop", "clients", "state", "traffic", "rpcs", "log", "playground"];
const tokens = { write: "a-token-that-may-write", read: "a-token-that-may-read" };

const dir = mkdtempSync(path.join(tmpdir(), "netloop-inspect-"));
const tokenFile = path.join(dir, "tokens");
writeFileSync(tokenFile, Object.entries(tokens).map((t) => `${t.join(" ")}\n`).join(""));
const guarded = ["--admin-token-file", tokenFile];

let chromium;
before(async () => { chromium = await browser(); });
after(async () => { await chromium.close(); rmSync(dir, { recursive: true }); });

const basic = (token) => ({ Authorization: `Basic ${Buffer.from(`x:${token}`).toString("base64")}` });

/** metrics returns the sums of the series of /metrics whose names and labels match. */
async function metrics(server) {
  const lines = (await (await fetch(`http://${server.at.admin}/metrics`, { headers: basic(tokens.read) })).text()).split("\n");
  return (name, ...labels) => lines.filter((l) => l.startsWith(`${name} `) || (l.startsWith(`${name}{`) && labels.every((x) => l.includes(x)))).reduce((sum, l) => sum + Number(l.slice(l.lastIndexOf(" "))), 0);
}

/** post sends an action. */
const post = (server, what, token = tokens.write) => fetch(`http://${server.at.admin}${what}`, { method: "POST", headers: basic(token) });

/** Inspector is a tab with the inspector. */
class Inspector {
  static async open(server, view = "overview", token = tokens.write) {
    const i = new Inspector();
    i.errors = [];
    i.foreign = [];
    i.base = `http://${server.at.admin}/inspect`;
    i.context = await chromium.newContext({ viewport: { width: 1440, height: 900 }, httpCredentials: token ? { username: "x", password: token } : undefined });
    i.page = await i.context.newPage();
    i.page.setDefaultTimeout(60_000);
    i.page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") i.errors.push(m.text()); });
    i.page.on("pageerror", (e) => i.errors.push(String(e)));
    i.page.on("request", (r) => { if (new URL(r.url()).host !== server.at.admin && !r.url().startsWith("blob:")) i.foreign.push(r.url()); });
    i.page.on("dialog", (d) => d.accept());
    await i.page.goto(`${i.base}#${view}`);
    return i;
  }

  /** click clicks the element of a selector, as a person would, and counts. */
  async click(selector) {
    this.clicks = (this.clicks ?? 0) + 1;
    await this.page.click(selector);
  }

  /** shows waits until the text of an element matches. */
  shows(selector, pattern) {
    return until(`${selector} shows ${pattern}`, () => this.page.evaluate(([s, p]) => [...document.querySelectorAll(s)].map((e) => e.innerText.replaceAll("\u202f", "")).find((t) => new RegExp(p).test(t)), [selector, pattern.source]));
  }

  /** number returns a number of the page, without the spaces between thousands. */
  async number(selector) {
    return Number((await this.page.innerText(selector)).replace(/[^\d.].*$/s, "").replaceAll("\u202f", ""));
  }

  /** clean checks the console and the requests, and closes the tab. */
  async clean(allowed = []) {
    assert.deepEqual(this.errors.filter((e) => !allowed.some((a) => a.test(e))), [], "the browser's console");
    assert.deepEqual(this.foreign, [], "requests to other hosts");
    await this.context.close();
  }
}

/** player joins a game as a client of a program. */
async function player(server, token, info) {
  const described = await (await fetch(new URL("/connect.json", server.url))).json();
  const client = await connect({ info: { ...described, ...info?.(described) }, transports: ["websocket"], token, lostAfterMs: 10_000 });
  const timer = setInterval(() => client.step(), 16);
  await until("it plays", () => client.status.phase === "playing");
  return { client, stop: () => { clearInterval(timer); client.close(); } };
}

describe("the inspector", { concurrency: 1 }, () => {
  test("shows the figures of /metrics in every view, on every screen", async (t) => {
    const server = await Server.start([...guarded, "--inspect-ring", "60s"]);
    const noBots = await allBots(server, 20, 60, async () => (await metrics(server))("netloop_clients"));
    try {
      const i = await Inspector.open(server);
      const painted = () => until("it has painted", () => i.page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime));
      const paints = [await painted()]; // The first one contains the start of the browser's process.
      for (let n = 0; n < 5; n++) {
        await i.page.reload();
        paints.push(await painted());
      }
      t.diagnostic(`first paints after ${paints.map((ms) => ms.toFixed(0)).join(", ")} ms`);
      assert.ok(Math.min(...paints) < 1000, `first paints after ${paints} ms`);

      await until("all bots are counted", async () => (await i.number(".tile:nth-child(5) strong")) === 20);
      assert.equal(await i.page.evaluate(() => [...document.querySelectorAll(".tile")].every((e) => e.children[0].innerText !== "overload" || (e.children[1].innerText === "normal") === e.classList.contains("good"))), true, "the color of overload");
      // A figure of the page that grows is at least that of a scrape before, and at most that of one after.
      const between = async (read, ...series) => {
        const least = (await metrics(server))(...series);
        const shown = await until(`the page has ${series} of ${least}`, async () => { const n = await read(); return n >= least && n; });
        const most = (await metrics(server))(...series);
        assert.ok(shown <= most, `${series}: ${shown} is more than ${most}`);
      };
      await between(() => i.number(".windows tbody tr:last-child td:nth-child(2)"), "netloop_ticks_total");

      const first = await metrics(server), began = Date.now();
      await i.page.click("nav a[href='#traffic']");
      await i.shows("tbody td", /ship/);
      await pause(4000);
      const shown = await i.page.evaluate(() => {
        const bytes = (s) => Number.parseFloat(s) * { B: 1, kB: 1e3, MB: 1e6 }[s.split(" ")[1]];
        const sums = {};
        for (const row of document.querySelectorAll(".columns > section tbody tr")) sums[row.cells[0].innerText] = (sums[row.cells[0].innerText] ?? 0) + bytes(row.cells[2].innerText);
        return sums;
      });
      const last = await metrics(server), seconds = (Date.now() - began) / 1000;
      for (const [name, rate] of Object.entries(shown)) {
        const want = (last("netloop_replication_bytes_total", `class="${name}"`) - first("netloop_replication_bytes_total", `class="${name}"`)) / seconds;
        assert.ok(Math.abs(rate - want) < 0.4 * want + 500, `${name}: ${rate} bytes a second, and ${want} by /metrics`);
      }
      assert.ok(await i.page.evaluate(colorsOf, ".treemap canvas") > 3, "the treemap is drawn");
      // The objects that cost most lead to their state.
      await i.shows(".dearest tbody tr", /ship/);
      const dearest = await i.page.evaluate(() => [...document.querySelectorAll(".dearest tbody tr")].map((r) => [...r.cells].map((c) => c.innerText)));
      assert.ok(dearest.length === 10 && dearest.every((r) => /^\d+\.\d+$/.test(r[0]) && Number.parseFloat(r[4]) > 0 && Number.parseFloat(r[5]) > 0), `${dearest.join("\n")}`);
      await i.page.click(".dearest tbody tr:first-child a");
      await i.shows("h2", new RegExp(`^${dearest[0][1]} ${dearest[0][0]}$`));
      await i.page.click("nav a[href='#rpcs']");
      const row = await i.shows("tbody tr", /\d/);
      await i.shows("tbody tr", /\d (ms|µs)\s/);
      const [method, stage] = row.split("\t");
      await between(() => i.number(`tbody tr:has(td:text-is('${method}')):has(td:text-is('${stage}')) td:nth-child(4)`), "netloop_rpcs_total", `method="${method}"`, `stage="${stage}"`, `outcome="ran"`);
      await i.page.keyboard.press("4");
      await i.shows("tbody tr", /connected\s.*%\s+\d/); // loss and age of the newest acknowledgement
      await until("all clients are listed", () => i.page.evaluate(() => document.querySelectorAll("tbody tr").length === 20));
      // A client whose prediction is wrong in each step reports it.
      const wrong = await player(server, "");
      wrong.client.inputs(() => ({ Thrust: false, Fire: false, Turn: 0 }));
      wrong.client.class("ship").predict((ship, _, frame) => { ship.Score = frame.fixedStep; });
      const reported = () => i.page.evaluate((id) => {
        const column = [...document.querySelectorAll("th")].findIndex((th) => th.innerText.startsWith("mispredicted"));
        const row = [...document.querySelectorAll("tbody tr")].find((tr) => tr.cells[0].innerText === id);
        return row && column >= 0 ? Number(row.cells[column].innerText.replaceAll("\u202f", "")) || 0 : 0;
      }, String(wrong.client.id));
      const shownReport = await until("its mispredictions are shown", reported);
      assert.ok(shownReport <= wrong.client.stats.mispredicted, `${shownReport} of ${wrong.client.stats.mispredicted}`);
      assert.ok((await metrics(server))("netloop_mispredictions_reported_total") >= shownReport);
      wrong.stop();

      await i.page.click("nav a[href='#ticks']");
      await i.page.click("button:text('the last 60 s')");
      await i.shows(".outcome.kept", /^ticks 1 to \d+ of the running server/);
      await until("the address names the copy", () => /#past\/.*past=1\b/.test(i.page.url()));
      await i.shows(".saved", /started without --record and --record-rooms/);
      await i.page.fill(".query", "ship.Hull > 0");
      await i.page.press(".query", "Enter");
      await i.shows(".found button", /· [\d.]+ \d+$/);

      assert.ok(await i.page.evaluate(() => document.querySelector("nav a[href='#cluster']").hidden), "a server without a cluster offers the view of one");
      for (const view of [...views, "past"]) {
        await i.page.goto(`${i.base}#${view}`);
        await i.shows(`main.${view}`, /\d/);
        for (const width of [3840, 1440, 360]) {
          await i.page.setViewportSize({ width, height: 900 });
          await pause(100);
          assert.ok(await i.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${view} is wider than ${width} px`);
        }
        for (const theme of ["first", "other"]) {
          const bad = await i.page.evaluate(contrasts);
          assert.deepEqual(bad, [], `contrast of ${view}, ${theme} theme`);
          await i.page.keyboard.press("t");
          await i.shows(`main.${view}`, /\d/);
        }
      }
      await i.clean();
    } finally {
      await noBots();
      await server.stop();
    }
  });

  test("is used by keys", async () => {
    const server = await Server.start([...guarded, "--faults.bots", "3", "--faults.work", "100"], {}, "faults");
    try {
      const i = await Inspector.open(server);
      const title = (view) => until(view, async () => (await i.page.title()) === `${view} · netloop`);
      await i.page.keyboard.press("2");
      await title("Ticks");
      await i.page.keyboard.press("Space");
      await i.shows("button.on", /go on/);
      await i.page.keyboard.press("4");
      await title("Clients");
      await i.shows("tbody tr", /bot-2/);
      await i.page.keyboard.press("/");
      await i.page.keyboard.type("bot-2");
      await until("others are left out", () => i.page.evaluate(() => document.querySelectorAll("tbody tr").length === 1));
      await i.page.keyboard.press("Escape");
      await i.page.keyboard.press("j");
      await i.page.keyboard.press("Enter");
      await i.shows("h2", /^Client \d+, bot-2$/);
      await i.shows(".share tbody tr", /^sent\s+ship\s+[\d.]+ k?B\s+\d/);
      await i.shows(".share tbody tr", /^received\s+\(inputs\)\s/);
      await i.page.fill(".network", "rtt=80ms");
      await i.page.press(".network", "Enter");
      await i.shows("tr.chosen", /memory simulated/);
      await i.shows(".card .facts", /simulated: rtt=80ms/);
      await i.page.click("form.write button[type=button]");
      await i.shows("tr.chosen", /memory\s+connected/);
      await i.page.keyboard.press("Escape");
      await i.page.waitForSelector("section.card", { state: "hidden" });
      await i.shows("tbody tr", /bot-1/);
      await i.page.keyboard.press("j");
      await i.page.keyboard.press("j");
      await i.page.keyboard.press("k");
      assert.equal(await i.page.evaluate(() => document.activeElement === document.querySelector("tbody tr")), true);
      const theme = () => i.page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
      const was = await theme();
      await i.page.keyboard.press("t");
      assert.notEqual(await theme(), was);

      // In the log and the loop the keys step through lines and systems, which are made anew each second.
      const focused = () => i.page.evaluate(() => document.activeElement.getAttribute("data-at"));
      for (const [key, view, row] of [["8", "Log", /^\d+$/], ["3", "Loop", /^[A-Z]\w+ \S+$/]]) {
        await i.page.keyboard.press(key);
        await title(view);
        await i.shows("main li[data-at]", /./);
        await i.page.keyboard.press("j");
        const first = await focused();
        assert.match(first, row);
        await pause(1500);
        assert.equal(await focused(), first, "the focus remains");
        await i.page.keyboard.press("j");
        assert.notEqual(await focused(), first);
        await i.page.keyboard.press("k");
        assert.equal(await focused(), first);
      }
      await i.shows("li.part", /^▾ world$/);
      // A group is disabled and enabled as a whole.
      await i.page.click(".group:has-text('world') button.write");
      await i.shows(".group", /world 3 systems, disabled enable/);
      await i.shows("li.system .state", /^disabled with world$/);
      await i.page.click(".group:has-text('world') button.write");
      await i.shows(".group", /world 3 systems disable/);
      // The map shows the cells that a chosen client sees.
      await i.page.keyboard.press("5");
      await i.shows(".map .legend", /^ship$/);
      await i.page.selectOption("section:has(.map) select", { label: "view of client 2" });
      await i.shows(".map .legend", /has [1-3][^]*does not see \d[^]*cells in view/);
      await i.shows("h2", /beside the copy of client 2/);
      // A field that the client may not read: why? names its rule.
      await i.page.click("tbody tr:has(td:nth-child(3):text-is('1'))");
      await until("why? names the rule, once the client sees the ship", async () => {
        await i.page.click(".fields tr:has-text('Cargo') button");
        await pause(300);
        return i.page.evaluate(() => /client 2, ship .* Cargo .*the client may not read the field.*: the field has the rule read=owner$/.test(document.querySelector(".fields .reason")?.innerText ?? ""));
      });
      await i.clean();
    } finally {
      await server.stop();
    }
  });

  test("leads to the system and the client that made a tick slow in three clicks", async () => {
    let server = await Server.start([...guarded, "--faults.bots", "3", "--faults.rooms", "2", "--faults.work", "100", "--trace-dir", path.join(dir, "traces")], {}, "faults");
    const relay = await tcpRelay(server.ports.web);
    const { client, stop } = await player(server, "mallory");
    try {
      const i = await Inspector.open(server);
      const fault = (Kind, Milli = 0) => assert.ok(client.send("fault", { Kind, Milli }));
      const from = async (view) => { await i.page.goto(`${i.base}#${view}`); await i.shows("#pulse", /Hz/); i.clicks = 0; };
      // A busy machine has slow ticks too: these are slower than most.
      fault("message", 410);
      await pause(500);
      fault("system", 420);
      await pause(500);
      fault("stall", 300);
      await pause(500);

      await from("overview");
      await i.click("nav a[href='#ticks']");
      await i.click(`tbody tr:has(td:nth-child(6):text-is("${client.id}"))`);
      await i.shows("h2", new RegExp(`the system rpc.drain took .* at Update, above all for the method fault of client ${client.id} `));
      await i.click(`section a[href='#clients/client=${client.id}']`);
      await i.shows("h2", /^Client \d+, mallory$/);
      assert.equal(i.clicks, 3);

      for (const [system, stage] of [["world.pathfinding", "Update"], ["world.save", "PostLateUpdate"]]) {
        await from("overview");
        await i.click("nav a[href='#ticks']");
        await i.click(`tbody tr:has(td:nth-child(5):text-is("${system}"))`);
        await i.shows("h2", new RegExp(`the system ${system} took .* at ${stage}$`));
        assert.deepEqual(await i.page.evaluate(() => [...document.querySelectorAll(".flame .box.stage")].map((e) => e.title.split(":")[0])), ["Initialization", "EarlyUpdate", "FixedUpdate", "PreUpdate", "Update", "PreLateUpdate", "PostLateUpdate"]);
        await i.click(".box.blame");
        await i.shows("li.chosen", new RegExp(`^${system}`));
        assert.equal(i.clicks, 3);
      }

      const { traces } = await (await fetch(`http://${server.at.admin}/api/traces`, { headers: basic(tokens.read) })).json();
      await from(`ticks/tick=${traces[0].tick}`);
      await i.shows("a[download]", /^netloop-.*\.trace$/);
      const trace = await fetch(new URL(await i.page.getAttribute("a[download]", "href"), i.base), { headers: basic(tokens.write) });
      assert.match(await trace.text(), /^go 1\./);

      fault("panic", 1000);
      await from("overview");
      await i.shows(".facts", /systems in quarantine after repeated panics: 1/);
      await i.click(".facts a");
      await i.shows(".alarm ~ a", /^ai.think$/);
      await i.click(".alarm ~ a");
      await i.shows("li.chosen", /in quarantine for \d+ ticks/);
      await from("log");
      await i.shows("[aria-label=Client] option", /^all clients$/);
      await i.page.selectOption("main [aria-label=Room]", "none");
      await i.click("a[href^='#loop/system=ai.think']");
      await i.shows("li.chosen", /^ai.think/);

      // A client that takes no more data.
      const choked = await player(server, "choked", (was) => ({ webSocket: was.webSocket.replace(/:\d+\//, `:${relay.port}/`) }));
      await from("overview");
      relay.choked = true;
      await i.click("nav a[href='#clients']");
      await i.shows(".alarm ~ a", new RegExp(`^client ${choked.client.id}$`));
      relay.choked = false;
      choked.stop();

      // A room that ends while it is watched.
      await from("overview");
      await i.click("tbody td:text-is('match-001')");
      await until("its room is chosen", async () => (await i.page.inputValue("#room")) === "match-001");
      assert.equal((await post(server, "/rooms/close?room=match-001")).status, 200);
      await i.shows("#banner", /^The room match-001 has ended: these are its last figures/);
      await i.click("#banner button");
      await i.page.waitForSelector("#banner", { state: "hidden" });
      await from("overview");
      await i.click("tr:has(td:has-text('a match with a name')) button:text-is('close')");
      await i.shows("#toast", /the room "a match with a name .*" closes in 0s/);
      await until("the room has ended", () => i.page.evaluate(() => ![...document.querySelectorAll("tbody td")].some((td) => td.innerText.startsWith("a match with a name"))));

      // A restart; the next server has no tokens and no clients.
      stop();
      await server.stop();
      await i.shows("#link.down", /./);
      server = await Server.start([], server.ports, "faults");
      await i.shows("#toast", /the server has restarted/);
      await from("clients");
      await i.shows("tr.empty", /no client is in the room/);
      await from("traffic");
      await i.shows("main", /0 B a second of state/);
      await from("rpcs");
      await i.shows("tr.empty", /no message has reached a queue yet/);
      assert.equal(await i.page.isVisible("button.write"), false);
      await i.clean([/ERR_|Failed to load/]);
    } finally {
      stop();
      relay.close();
      await server.stop();
    }
  });

  test("lets only tokens of role write act, and needs one to read", async () => {
    const server = await Server.start(guarded, {}, "faults");
    try {
      const bad = await chromium.newPage({ httpCredentials: { username: "x", password: "a-token-of-somebody-else" } });
      assert.equal((await bad.goto(`http://${server.at.admin}/inspect`)).status(), 401);
      await bad.close();
      assert.equal((await post(server, "/api/rooms/lock", tokens.read)).status, 403);

      const reader = await Inspector.open(server, "overview", tokens.read);
      await reader.shows(".facts", /need a token of role write/);
      assert.equal(await reader.page.isVisible("button.write"), false);
      await reader.page.goto(`${reader.base}#playground`);
      await reader.shows(".opening", /needs a token of role write/);
      assert.equal(await reader.page.isDisabled("text=Open a client here"), true);
      await reader.page.goto(`${reader.base}#rpcs/method=fault`);
      await reader.shows(".card", /need a token with the role write/);
      await reader.page.goto(`${reader.base}#overview`);
      await reader.page.addStyleTag({ content: ".reader .write { display: inline !important; }" });
      await reader.page.click("button.write");
      await reader.shows("#toast.wrong", /this page needs a token with the role write/);
      await reader.clean([/403/]);

      const writer = await Inspector.open(server);
      await writer.page.click("button.write");
      await writer.shows("#toast", /the room is locked/);
      await writer.page.goto(`${writer.base}#log`);
      await writer.shows(".lines li", /an action of the admin listener.*action=\/api\/rooms\/lock/s);
      await writer.clean();
    } finally {
      await server.stop();
    }
  });

  test("lets a tab play: it sends, drops, comes back and leaves", async () => {
    const server = await Server.start([...guarded, "--faults.work", "100", "--faults.rooms", "2"], {}, "faults");
    try {
      const i = await Inspector.open(server, "playground");
      // A choice that is noted in the address does not undo a click on another view.
      await until("the methods are listed", () => i.page.evaluate(() => document.querySelector("[aria-label=Method]").options.length > 1));
      await i.page.evaluate(() => {
        document.querySelector("nav a[href='#log']").click();
        document.querySelector("[aria-label=Method]").dispatchEvent(new Event("change"));
      });
      await i.shows("nav [aria-current]", /^Log$/);
      await i.page.click("nav a[href='#playground']");
      const open = async (room, token) => {
        await i.page.fill("main [aria-label=Room]", room);
        await i.page.fill("[aria-label='Token of the game']", token);
        await i.page.click("text=Open a client here");
      };
      const clients = async (room = "") => (await (await fetch(`http://${server.at.admin}/api/clients?room=${room}`, { headers: basic(tokens.read) })).json()).clients;
      // answered opens a client until an element shows a text: on a busy machine the server refuses it for a while.
      const answered = (room, token, selector, pattern) => until(`${selector} shows ${pattern}`, async () => {
        await open(room, token);
        const shown = await i.shows(`${selector}, h2, .talk .wrong`, new RegExp(`${pattern.source}|overloaded`));
        if (pattern.test(shown)) return true;
        await i.page.click("button:text-is('close')");
      });
      await answered("", "tester", "h2", /plays$/);
      await i.shows("h2", /^Client 1 plays$/);
      await i.shows(".facts", /objects in view\s*1\b/);
      assert.deepEqual((await clients()).map((c) => [c.subject, c.transport, c.state]), [["tester", "webtransport", "connected"]]);

      const rpcs = await Inspector.open(server, "rpcs/method=fault");
      await rpcs.shows(".payloads", /kept only while somebody looks/);
      await i.page.fill("[aria-label=Kind]", "system");
      await i.page.fill("[aria-label=Milli]", "70000");
      await i.shows(".message .wrong", /^Milli is no uint16: 70000$/);
      await i.page.click("button:text-is('send')"); // It is not sent.
      await i.page.fill("textarea", '{"Kind": "system", "Milli": 31}');
      assert.equal(await i.page.inputValue("[aria-label=Milli]"), "31");
      await i.page.click("button:text-is('send')");
      await i.shows(".talk .sent", /→ fault \{"Kind":"system","Milli":31\}$/);
      await rpcs.shows(".payloads tbody tr", /^\d+\s+client 1\s+default\s+ran\s+\{"Kind":"system","Milli":31\}$/);
      assert.equal(await rpcs.page.evaluate(() => document.querySelectorAll(".payloads tbody tr").length), 1);
      await rpcs.page.goto(`${rpcs.base}#rpcs/method=login`);
      await rpcs.shows(".card", /the messages of "login" are secret/);
      await rpcs.clean();

      await i.page.selectOption("[aria-label=Method]", { label: "input of each step" });
      await i.page.fill("[aria-label=Turn]", "1");
      await i.page.click("button:text-is('hold')");
      await until("its inputs arrive", async () => (await clients())[0].inputs > 0);

      await i.page.click("text=its state");
      await i.shows("tbody tr", /ship.*tester/s);
      await i.page.goto(`${i.base}#playground`);
      await i.page.click("text=drop its connection");
      await i.shows("h2", /^Client 1 has no connection; the server keeps its seat for \d s$/);
      await until("it is dropped", async () => (await clients())[0].state === "dropped");
      await i.page.click("text=come back");
      await i.shows("h2", /^Client 1 plays$/);
      await i.shows(".facts", /1, of which 1 resumed/);

      const move = async (code) => {
        await i.page.fill("[aria-label='Ticket or code of another room']", code);
        await i.page.click("button:text-is('move')");
      };
      await move("hideout");
      await i.shows(".talk li", /moves to another room/);
      await i.shows(".facts", /room\s*match-001\s/);
      await i.shows("h2", /^Client 2 plays$/); // It has a new id in the other room.
      assert.deepEqual((await clients("match-001")).map((c) => [c.subject, c.state]), [["tester", "connected"]]);
      assert.equal((await clients()).length, 0);
      await move("hideout");
      await i.shows(".talk .wrong", /the room lets no client move/);
      for (const theme of ["first", "other"]) {
        await i.page.setViewportSize({ width: theme === "first" ? 360 : 1440, height: 900 });
        assert.deepEqual(await i.page.evaluate(contrasts), [], `contrast, ${theme} theme`);
        assert.ok(await i.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "wider than the screen");
        await i.page.evaluate(() => document.activeElement.blur());
        await i.page.keyboard.press("t");
        await i.shows(".facts", /objects in view/);
      }
      await i.page.click("button:text-is('leave')");
      await until("it has left", async () => (await clients("match-001")).length === 0);

      await answered("nowhere", "", ".talk .wrong", /there is no room/);
      await i.page.click("button:text-is('close')");
      await answered("", "stranger", ".talk .wrong", /strangers may not join/);
      await i.page.click("button:text-is('close')");
      assert.equal((await post(server, "/api/rooms/lock")).status, 200);
      await answered("", "late", ".talk .wrong", /locked/);
      assert.equal((await post(server, "/api/rooms/unlock")).status, 200);
      await answered("", "last", "h2", /^Client \d plays$/);
      await server.stop();
      await i.shows("h2", /closing|no connection/);
      await open("", "gone");
      await i.shows(".talk .wrong", /Failed to fetch|does not answer/);
      await i.clean([/ERR_|Failed to load|WebSocket/]);
    } finally {
      await server.stop();
    }
  });

  test("costs nothing without a tab, little with one, and closed or stuck tabs leave nothing", async (t) => {
    const server = await Server.start([...guarded, "--faults.bots", "20", "--faults.systems", "300", "--faults.work", "100"], {}, "faults");
    try {
      await until("the bots play", async () => (await metrics(server))("netloop_clients") === 20);
      const idle = await metrics(server);
      assert.equal(idle("netloop_inspect_seconds_total"), 0);
      const query = "topic=clients&topic=loop&topic=ticks&topic=overview&topic=rooms&topic=metrics&prefix=rpc";
      const open = () => {
        const socket = dial(server.ports.admin, "127.0.0.1");
        socket.on("error", () => {});
        socket.write(`GET /api/stream?${query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${basic(tokens.read).Authorization}\r\n\r\n`);
        return socket;
      };
      const stuck = open(); // Nothing reads from it.

      const tab = await Inspector.open(server, "clients");
      await tab.shows("tbody tr", /bot-/);
      const [was, began] = [await metrics(server), Date.now()];
      await pause(3000);
      const share = ((await metrics(server))("netloop_inspect_seconds_total") - was("netloop_inspect_seconds_total")) / ((Date.now() - began) / 1000);
      t.diagnostic(`questions took ${(100 * share).toFixed(3)} % of the time, for 20 clients and 300 systems`);
      assert.ok(share < 0.02, `${share}`);
      await tab.clean();

      const tabs = Array.from({ length: 8 }, open);
      for (const s of tabs) s.resume();
      await until("the streams are open", async () => (await metrics(server))("go_goroutines") > idle("go_goroutines") + 8);
      for (const s of tabs) s.resetAndDestroy();
      await until("the stuck stream is closed and counted", async () => (await metrics(server))("netloop_admin_refusals_total", `reason="slow"`) === 1);
      await until("no goroutine is left", async () => (await metrics(server))("go_goroutines") <= idle("go_goroutines") + 2);
      let bytes = 0;
      stuck.on("data", (b) => { bytes += b.length; });
      await until("the rest is read", () => stuck.closed || stuck.readableEnded);
      assert.ok(bytes > 0 && bytes < 1 << 20, `${bytes} bytes were kept for it`);
      t.diagnostic(`${(bytes / 1000).toFixed(0)} kB were kept for a tab that read nothing`);
    } finally {
      await server.stop();
    }
  });
});
