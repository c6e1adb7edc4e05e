// Takes the pictures of docs/TUTORIAL.md: an arena of part 6 with bots, and the lobby with records.
//
//	NETLOOP_BIN=bin node internal/browser/tutorialpictures.mjs FOLDER
//
// bin has the programs tutorial and tutorial-bots.
import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

import { browser } from "./page.mjs";
import { bin, Server } from "./server.mjs";

const [folder] = process.argv.slice(2);
const server = await Server.start(["--dots.records", mkdtempSync(path.join(tmpdir(), "netloop-records-"))], {}, ["tutorial", "6"]);
const bots = spawn(path.join(bin, "tutorial-bots"), ["run", "--addr", server.at.listen, "--clients", "15", "--duration", "100s"], { stdio: "ignore" });
const chromium = await browser();
const page = await chromium.newPage({ viewport: { width: 1120, height: 760 } });
await page.goto(`${server.url}?name=ada`);
await page.waitForFunction(() => document.querySelectorAll("#arenas li").length === 2);
await page.waitForTimeout(2000); // All bots are in an arena.
await page.click("#play");
await page.waitForFunction(() => document.querySelectorAll("#scores li").length > 5);
await page.keyboard.down("ArrowRight");
await page.waitForTimeout(400);
await page.keyboard.up("ArrowRight");
await page.waitForTimeout(12_000);
await page.screenshot({ path: path.join(folder, "tutorial-arena.png") });
await page.waitForFunction(() => document.getElementById("winner").textContent !== "", null, { timeout: 80_000 });
await page.click("#leave");
await page.waitForSelector("#best li");
await page.waitForTimeout(500);
await page.screenshot({ path: path.join(folder, "tutorial-lobby.png") });
await chromium.close();
bots.kill("SIGKILL");
await server.stop();
