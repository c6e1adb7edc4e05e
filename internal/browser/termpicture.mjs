// Takes a picture of the terminal view of a load test in tmux, drawn by Chromium.
//
//	NETLOOP_BIN=bin node internal/browser/termpicture.mjs FILE [COLUMNS ROWS [SECONDS [FLAGS...]]]
import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import { browser } from "./page.mjs";
import { indexed } from "./palette.mjs";
import { Server, bin } from "./server.mjs";

const [file, columns = "120", rows = "40", seconds = "22", ...flags] = process.argv.slice(2);
if (spawnSync("tmux", ["-V"]).error) {
  console.log("the picture of a load test's terminal view: left out, it needs tmux");
  process.exit();
}
const tmux = (...args) => execFileSync("tmux", ["-L", `netloop-${process.pid}`, "-f", "/dev/null", ...args], { encoding: "utf8" });
const server = await Server.start();
tmux("new-session", "-d", "-x", columns, "-y", rows, "-e", `NO_COLOR=${process.env.NO_COLOR ?? ""}`, path.resolve(bin, "loadclient"), "run", "--addr", server.at.listen, "--admin", server.at.admin,
  "--clients", "60", "--ramp", "2s", "--warmup", "2s", "--duration", "30s", "--schedule", "step", "--churn", "2%/s",
  "--threshold", "snapshot.age.p99<3ticks+rtt", "--threshold", "snapshot.rate.p50>=99%", "--threshold", "server.tick.p99<50%", "--threshold", "server.cpu<1", ...flags);
await pause(Number(seconds) * 1000);
const screen = tmux("capture-pane", "-p", "-e");
tmux("send-keys", "q");
await pause(1000);
spawnSync("tmux", ["-L", `netloop-${process.pid}`, "kill-server"]);
await server.stop();

// The palette of a dark terminal, by the parameters of the escape sequences.
const colors = { 31: "#f47067", 32: "#6cc070", 33: "#d9a441", 34: "#6aa9ff", 35: "#c792ea", 36: "#56c2c0", 93: "#ffe08a" };
const escape = (text) => text.replace(/[&<>]/g, (c) => `&#${c.charCodeAt(0)};`);

/** html returns the cells of the terminal as spans. */
function html(text) {
  let style = {}, out = "";
  for (const part of text.split(/(\x1b\[[0-9;]*m)/)) {
    const codes = /^\x1b\[([0-9;]*)m$/.exec(part);
    if (!codes) {
      const fore = style.invert ? "#14161b" : style.color ?? "#d7dae0";
      const css = `color:${fore};${style.invert ? "background:#d7dae0;" : ""}${style.bold ? "font-weight:bold;" : ""}${style.dim ? "opacity:.6;" : ""}`;
      out += part && `<span style="${css}">${escape(part)}</span>`;
      continue;
    }
    for (const code of (codes[1] || "0").split(";")) {
      if (code === "0") style = {};
      else if (code === "1") style.bold = true;
      else if (code === "2") style.dim = true;
      else if (code === "7") style.invert = true;
      else if (code === "39") delete style.color;
      else if (colors[code]) style.color = colors[code];
    }
  }
  return out;
}

const chromium = await browser();
const page = await chromium.newPage({ viewport: { width: 3000, height: 2000 } });
await page.setContent(`<body style="margin:0;background:#14161b"><pre style="margin:0;padding:14px;display:inline-block;font:15px/17px 'DejaVu Sans Mono',monospace">${html(screen)}</pre>`);
writeFileSync(file, indexed(await page.locator("pre").screenshot()));
await chromium.close();
