// Takes the pictures of docs/INSPECT.md: the overview, a slow tick, and a client, of a server with bots,
// the playground, and a recording.
//
//	NETLOOP_BIN=bin node --experimental-websocket internal/browser/inspectpictures.mjs FOLDER
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import { connect } from "../../clients/ts/dist/netloop.js";
import { browser } from "./page.mjs";
import { indexed } from "./palette.mjs";
import { Server, bin, bots, until } from "./server.mjs";

const [folder] = process.argv.slice(2);
const server = await Server.start(["--faults.bots", "24", "--faults.rooms", "4"], {}, "faults");
const client = await connect({ url: new URL("/connect.json", server.url), transports: ["websocket"], token: "mallory" });
const stepping = setInterval(() => client.step(), 16);
await until("it plays", () => client.status.phase === "playing");
const chromium = await browser();
const page = await chromium.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: "dark" });
const take = async (name) => writeFileSync(path.join(folder, `inspect-${name}.png`), indexed(await page.screenshot()));

await page.goto(`http://${server.at.admin}/inspect`);
await pause(30_000); // for the plots
client.send("fault", { Kind: "system", Milli: 40 });
await pause(700);
client.send("fault", { Kind: "message", Milli: 60 });
await pause(3000);
await take("overview");
await page.keyboard.press("2");
const row = `tbody tr:has(td:nth-child(6):text-is("${client.id}"))`;
await page.waitForSelector(row);
await pause(1000);
await page.click(row);
await page.mouse.move(0, 0);
await take("ticks");
await page.click(`section a[href='#clients/client=${client.id}']`);
await pause(30_000);
await take("clients");

clearInterval(stepping);
client.close();
await server.stop();

const dir = mkdtempSync(path.join(tmpdir(), "netloop-pictures-"));
const file = path.join(dir, "game.rec");
const [tokens, password] = [path.join(dir, "tokens"), "a-token-that-may-write"];
writeFileSync(tokens, `write ${password}\n`);
const arena = await Server.start(["--record", file, "--admin-token-file", tokens]);
const noBots = bots(arena, 12, 60);
const writer = await chromium.newPage({ viewport: { width: 1280, height: 620 }, colorScheme: "dark", httpCredentials: { username: "x", password } });
await writer.goto(`http://${arena.at.admin}/inspect#playground`);
await writer.click("text=Open a client here");
await writer.waitForSelector("h2:text('plays')");
await writer.selectOption("[aria-label=Method]", "say");
for (const text of ["hello from the inspector", "who has the highest score?"]) {
  await writer.fill("[aria-label=text]", text);
  await writer.click("button:text-is('send')");
  await pause(1500);
}
await writer.selectOption("[aria-label=Method]", "standings");
await writer.fill("[aria-label=Top]", "3");
await writer.click("button:text-is('ask')");
await pause(1500);
await writer.screenshot({ path: path.join(folder, "inspect-playground.png") });
await writer.close();
await pause(10_000);
await noBots();
await arena.stop();
const inspect = spawn(path.join(bin, "server"), ["inspect", "--listen", "127.0.0.1:0", file], { stdio: ["ignore", "pipe", "inherit"] });
let said = "";
inspect.stdout.on("data", (b) => { said += b; });
await page.setViewportSize({ width: 1280, height: 1040 });
await page.goto(await until("the recording is served", () => / at (http:\S+)/.exec(said)?.[1]));
await page.waitForSelector(".outcome.identical", { timeout: 60_000 });
await page.fill(".query", "ship.Hull == 0");
await page.press(".query", "Enter");
await page.waitForSelector(".found button");
await pause(1000);
await take("recording");
inspect.kill();
rmSync(dir, { recursive: true });
await chromium.close();
