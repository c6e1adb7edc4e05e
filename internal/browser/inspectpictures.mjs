// Takes the pictures of docs/INSPECT.md: the overview, a slow tick, and a client, of a server with bots.
//
//	NETLOOP_BIN=bin node --experimental-websocket internal/browser/inspectpictures.mjs FOLDER
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import { connect } from "../../clients/ts/dist/netloop.js";
import { browser } from "./page.mjs";
import { Server, until } from "./server.mjs";

const [folder] = process.argv.slice(2);
const server = await Server.start(["--faults.bots", "24", "--faults.rooms", "4"], {}, "faults");
const client = await connect({ url: new URL("/connect.json", server.url), transports: ["websocket"], token: "mallory" });
const stepping = setInterval(() => client.step(), 16);
await until("it plays", () => client.status.phase === "playing");
const chromium = await browser();
const page = await chromium.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: "dark" });
const take = (name) => page.screenshot({ path: path.join(folder, `inspect-${name}.png`) });

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

await chromium.close();
clearInterval(stepping);
client.close();
await server.stop();
