// The state of a room, and a recording, in the inspector's page; and the page of a load test.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";

import { browser, colorsOf } from "./page.mjs";
import { Server, bin, bots, until } from "./server.mjs";

const dir = mkdtempSync(path.join(tmpdir(), "netloop-recording-"));
const file = path.join(dir, "game.rec");

let chromium;
before(async () => { chromium = await browser(); });
after(async () => { await chromium.close(); rmSync(dir, { recursive: true }); });

/** open opens a page, and collects what its console says. */
async function open(url) {
  const page = await chromium.newPage({ viewport: { width: 1280, height: 1000 } });
  const errors = [];
  page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") errors.push(m.text()); });
  page.on("pageerror", (e) => errors.push(String(e)));
  await page.goto(url);
  return { page, errors, text: (selector) => page.evaluate((s) => [...document.querySelectorAll(s)].map((e) => e.innerText).join("\n"), selector) };
}

/** inspect serves a recording, and returns the address of its page. */
async function inspect(recording) {
  const process_ = spawn(path.join(bin, "server"), ["inspect", "--listen", "127.0.0.1:0", recording], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  process_.stdout.on("data", (b) => { said += b; });
  const url = await until("the page is served", () => / at (http:\S+)/.exec(said)?.[1]);
  return { url, stop: () => process_.kill("SIGKILL") };
}

describe("objects in the page", { concurrency: 1 }, () => {
  test("a room's objects are shown beside a client's copy, and a recording of it at any tick", async () => {
    const server = await Server.start(["--record", file]);
    const stop = bots(server, 4, 60);
    const { page, errors, text } = await open(`http://${server.at.admin}/inspect#state/class=ship&client=1`);
    await until("ships are listed with the copy", async () => /ship\s+1\s.*(older|the same)/s.test(await text(".objects tbody tr")));
    await page.click(".objects tbody tr:first-child td:first-child");
    await until("the fields are shown", async () => /Heading[\s\S]*Hull/.test(await text(".fields")));
    await page.click(".fields tr:has-text('Hull') button");
    await until("the reason is shown", async () => /client 1, ship .* Hull at tick/.test(await text(".fields .reason")));
    await until("edits flash", () => page.evaluate(() => document.querySelector(".fields tr.flash") !== null));
    assert.ok(await page.evaluate(colorsOf, ".map canvas") > 2, "the map is drawn");
    // Without a token of role write, fields with a read rule are not shown.
    assert.match(await text(".fields tr:has(td:first-child)"), /needs role write: read=owner/);
    // The recording that grows is listed, with the command that opens it.
    await page.goto(`http://${server.at.admin}/inspect#past`);
    await until("the recording is listed", async () => /game\.rec\s+\(default\)\s+[\d.]+ [kM]?B\s.*server inspect \S*game\.rec/s.test(await text(".saved tbody tr")));
    // That no past ticks have been taken is an answer 404, which is also a line of the console.
    assert.deepEqual(errors.filter((e) => !/status of 404/.test(e)), []);
    await page.close();
    await stop();
    await server.stop();

    const foreign = path.join(dir, "other.rec");
    await (await Server.start(["--record", foreign], {}, "dots")).stop();
    writeFileSync(path.join(dir, "cut.rec"), readFileSync(file).subarray(0, -1000));
    const served = await inspect(file);
    try {
      const shown = await open(served.url);
      await until("the replay is identical", async () => /all ticks are as recorded/.test(await shown.text(".outcome")));
      await shown.page.fill(".query", "ship.Hull >= 1");
      await shown.page.press(".query", "Enter");
      await until("ticks are found", async () => /\d+ ticks:/.test(await shown.text(".found")));
      const at = () => shown.page.inputValue("input[aria-label=Tick]").then(Number);
      const first = await at();
      assert.ok(first > 1, `found at ${first}`);
      await until("the changes are those of the tick", async () => new RegExp(`ship is new`).test(await shown.text(".changes")));
      await shown.page.keyboard.press("Tab");
      await shown.page.click("h2");
      await shown.page.keyboard.press("ArrowRight");
      await until("a step forward", async () => (await at()) === first + 1);
      await shown.page.keyboard.press("ArrowLeft");
      await until("a step back", async () => (await at()) === first);
      await shown.page.fill("[aria-label='Compared with tick']", "1");
      await shown.page.press("[aria-label='Compared with tick']", "Enter");
      await until("the changes are those since tick 1", async () => /since tick 1\b/.test((await shown.text(".changes h2"))));
      // A file that cannot be opened is named until another is opened, and the recording remains.
      await shown.page.setInputFiles("input[type=file]", { name: "bad.rec", mimeType: "application/octet-stream", buffer: Buffer.from("no recording") });
      await until("the file is refused", async () => /cannot open "bad.rec".*game.rec remains open/.test(await shown.text(".refused")));
      await shown.page.setInputFiles("input[type=file]", { name: "dots.rec", mimeType: "application/octet-stream", buffer: readFileSync(foreign) });
      await until("the other game is named", async () => /cannot open "dots.rec".*dots.*game.rec remains open/s.test(await shown.text(".refused")));
      await shown.page.click("h2");
      await shown.page.keyboard.press("ArrowRight");
      await until("a step forward", async () => (await at()) === first + 1);
      // A damaged file of the folder is shown up to its last whole tick, and an uploaded one replaces it.
      await shown.page.selectOption("[aria-label=File]", "cut.rec");
      await until("the damaged file is shown", async () => /cut\.rec/.test(await shown.page.title()) && /all ticks up to there are as recorded/.test(await shown.text(".outcome")));
      await shown.page.setInputFiles("input[type=file]", { name: "mine.rec", mimeType: "application/octet-stream", buffer: readFileSync(file) });
      await until("the upload is shown", async () => /mine\.rec/.test(await shown.page.title()) && /all ticks are as recorded/.test(await shown.text(".outcome")));
      await shown.page.fill(".query", "shap.Hull == 0");
      await shown.page.press(".query", "Enter");
      // The answer 400 is also a line of the browser's console.
      await until("the wrong class is named", async () => /shap.*ship/s.test(await shown.text(".found")));
      assert.deepEqual(shown.errors.filter((e) => !/status of 400/.test(e)), []);
      await shown.page.close();
    } finally {
      served.stop();
    }
  });
});

test("the page of load tests draws its charts without a request", async () => {
  const html = path.join(dir, "report.html");
  const files = ["one", "two"].map((name, i) => {
    const result = JSON.parse(readFileSync("../../loadtest/testdata/result.json", "utf8"));
    const [point] = result.series.points;
    result.series.points = Array.from({ length: 20 }, (_, at) => ({
      ...point, at_s: at, clients: at, snapshot_age_p50_ms: at + i, snapshot_age_p99_ms: 2 * at, call_latency_p99_ms: 30, server_tick_p99_ms: 2, server_memory_bytes: 1e7,
    }));
    result.verdict = { ...result.verdict, pass: i === 1, valid: i === 1, reasons: i === 1 ? [] : ["</script><b id=evil>"] };
    const to = path.join(dir, `${name}.json`);
    writeFileSync(to, JSON.stringify(result));
    return to;
  });
  execFileSync(path.join(bin, "loadclient"), ["report", ...files, "--html", html]);
  const page = await chromium.newPage();
  const errors = [], requests = [];
  page.on("console", (m) => errors.push(m.text()));
  page.on("pageerror", (e) => errors.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith("data:")) requests.push(r.url()); });
  await page.goto(pathToFileURL(html).href);
  const painted = () => page.evaluate(() => [...document.querySelectorAll("canvas")].map((c) => c.width > 0 && c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((b) => b !== 0)));
  const drawn = await until("the charts are drawn", async () => { const all = await painted(); return all.length >= 6 && all.every((b) => b) && all; });
  assert.equal(drawn.length, 7);
  assert.match(await page.innerText(".card:first-child"), /one\s+INVALID[\s\S]*<\/script><b id=evil>/);
  assert.match(await page.innerText(".card:last-child"), /two\s+PASS/);
  assert.equal(await page.locator("#evil").count(), 0);
  assert.deepEqual(requests, [pathToFileURL(html).href]);
  assert.deepEqual(errors, []);
  await page.close();
});
