// Measures a frame in Chromium: the arena with 100 bots and 150 rocks, so 250 moving objects, for
// SECONDS. It prints the frames per second, the duration of the client's step, and the growth of the
// heap after a collection.
//
//	NETLOOP_BIN=bin node internal/browser/frames.mjs [SECONDS]
import { browser } from "./page.mjs";
import { Server, bots, until } from "./server.mjs";

const seconds = Number(process.argv[2] ?? 20);
const server = await Server.start(["--arena.rocks", "150"]);
const chromium = await browser(["--js-flags=--expose-gc"]); // First, or it makes the server refuse bots.
const noBots = bots(server, 100, seconds + 40);
try {
  const page = await chromium.newPage({ viewport: { width: 1280, height: 720 } });
  await page.goto(server.url);
  await until("all ships are seen", () => page.evaluate(() => globalThis.arena.game?.ships.size >= 100), 60_000);
  await page.fill("#name", "ada");
  await page.click("#join button");
  await page.waitForSelector("#me:not([hidden])");
  const measured = await page.evaluate(async (ms) => {
    const { client } = globalThis.arena.game;
    const settle = () => new Promise((done) => setTimeout(done, 2000));
    await settle();
    globalThis.gc();
    const heap = performance.memory.usedJSHeapSize;
    const steps = [];
    const step = client.step.bind(client);
    client.step = (now) => {
      const begun = performance.now();
      step(now);
      steps.push(performance.now() - begun);
    };
    const begun = performance.now();
    await new Promise((done) => setTimeout(done, ms));
    const took = (performance.now() - begun) / 1000;
    delete client.step;
    const frames = steps.length;
    steps.sort((a, b) => a - b);
    const at = (part) => Number(steps[Math.floor(part * (frames - 1))].toFixed(2));
    const figures = { objects: globalThis.arena.game.ships.size + globalThis.arena.game.rocks.size, framesPerSecond: Number((frames / took).toFixed(1)), stepMs: { p50: at(0.5), p99: at(0.99) } };
    steps.length = 0;
    globalThis.gc();
    const s = client.stats;
    return { ...figures, heapGrowthKB: Math.round((performance.memory.usedJSHeapSize - heap) / 1000), snapshotRate: s.snapshotRate, viewDelayMs: Math.round(s.viewDelayMs), mispredicted: s.mispredicted, transport: s.transport };
  }, seconds * 1000);
  console.log(JSON.stringify(measured, null, 2));
} finally {
  await chromium.close();
  await noBots();
  await server.stop();
}
