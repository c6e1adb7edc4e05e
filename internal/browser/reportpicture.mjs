// Takes the picture of docs/LOAD.md: the page of two load tests, one of them over a bad network.
//
//	NETLOOP_BIN=bin node internal/browser/reportpicture.mjs FOLDER
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

import { browser } from "./page.mjs";
import { indexed } from "./palette.mjs";
import { Server, bin } from "./server.mjs";

const [folder] = process.argv.slice(2);
const dir = mkdtempSync(path.join(tmpdir(), "netloop-pictures-"));
const client = (...args) => once(spawn(path.join(bin, "loadclient"), args, { stdio: "ignore" }), "exit");
const files = [];
for (const [name, more] of [["good link", []], ["60 ms and 2 % loss", ["--simulate", "rtt=60ms,loss=2%"]]]) {
  const server = await Server.start();
  files.push(path.join(dir, `${name}.json`));
  await client("run", "--addr", server.at.listen, "--admin", server.at.admin, "--clients", "40", "--ramp", "4s", "--warmup", "2s", "--duration", "20s",
    "--threshold", "snapshot.age.p99<3ticks+rtt", "--threshold", "server.tick.p99<50%", "--threshold", "call.latency.p99<150ms", "--out", `json=${files.at(-1)}`, ...more);
  await server.stop();
}
const html = path.join(dir, "report.html");
await client("report", ...files, "--html", html);
const chromium = await browser();
const page = await chromium.newPage({ viewport: { width: 1280, height: 1180 }, colorScheme: "dark" });
await page.goto(pathToFileURL(html).href);
await page.waitForSelector("canvas");
writeFileSync(path.join(folder, "load-report.png"), indexed(await page.screenshot()));
await chromium.close();
rmSync(dir, { recursive: true });
