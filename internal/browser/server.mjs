// The programs of the tests: the real server and its bots, as separate processes, and relays that can
// lose data.
import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";

/** The folder with the programs server and loadclient. */
export const bin = process.env.NETLOOP_BIN ?? "bin";

/** until waits until fn returns a true value, and fails after a while with its name, a text or a function of it. */
export async function until(what, fn, limitMs = 60_000) {
  for (const end = Date.now() + limitMs; ; await pause(50)) {
    const got = await fn();
    if (got) return got;
    if (Date.now() > end) throw new Error(`waited ${limitMs} ms in vain: ${typeof what === "function" ? what() : what}`);
  }
}

/** Server is a running server. */
export class Server {
  /**
   * start starts a server. Ports are free ones, or those of an earlier server; program is the game, or
   * a list of it and its first arguments. With a folder, make run starts the server there.
   */
  static async start(flags = [], ports = {}, program = "server", folder = undefined) {
    const dir = mkdtempSync(path.join(tmpdir(), "netloop-browser-"));
    const file = path.join(dir, "addr.json");
    const [name, ...first] = [program].flat();
    const all = [
      "--listen", `127.0.0.1:${ports.listen ?? 0}`, "--admin", `127.0.0.1:${ports.admin ?? 0}`, "--web", `127.0.0.1:${ports.web ?? 0}`,
      "--addr-file", file, ...flags,
    ];
    const stdio = ["ignore", "ignore", "pipe"];
    const process_ = folder ? spawn("make", ["run", `ARGS=${all.join(" ")}`], { stdio, cwd: folder, detached: true })
      : spawn(path.join(bin, name), [...first, "run", ...all], { stdio });
    const s = new Server();
    s.process = process_;
    s.folder = folder;
    s.log = "";
    process_.stderr.on("data", (b) => { s.log = (s.log + b).slice(-20_000); });
    s.ended = once(process_, "exit");
    s.at = await until("the server is ready", () => {
      if (process_.exitCode !== null) throw new Error(`the server has ended:\n${s.log}`);
      try { return JSON.parse(readFileSync(file, "utf8")); } catch { return undefined; }
    }, folder ? 120_000 : 60_000); // make run links the program first.
    rmSync(dir, { recursive: true });
    s.url = `http://${s.at.web}/`;
    s.ports = { listen: port(s.at.listen), web: port(s.at.web), admin: port(s.at.admin) };
    return s;
  }

  /** stop ends it as an operator would, and make run as Ctrl-C in a terminal does. */
  async stop() {
    if (this.folder) process.kill(-this.process.pid, "SIGINT");
    else this.process.kill("SIGTERM");
    await this.ended;
  }
}

export function port(address) {
  return Number(address.slice(address.lastIndexOf(":") + 1));
}

/** bots runs bots for a time, and returns a function that ends them earlier, by default like a crash. */
export function bots(server, clients, seconds) {
  const load = spawn(path.join(bin, "loadclient"), ["run", "--addr", server.at.listen, "--clients", String(clients), "--duration", `${seconds}s`], { stdio: "ignore" });
  return async (signal = "SIGKILL") => {
    if (load.exitCode !== null) return;
    const ended = once(load, "exit");
    load.kill(signal);
    await ended;
  };
}

/**
 * allBots runs bots as bots does, and waits until all of them play. A server that is too slow for its
 * ticks refuses some for a few seconds: then all leave, and join again.
 */
export async function allBots(server, clients, seconds, playing) {
  for (const end = Date.now() + 60_000; ;) {
    const leave = bots(server, clients, seconds);
    try {
      await until(`${clients} bots play`, async () => (await playing()) === clients, 15_000);
      return leave;
    } catch (e) {
      await leave("SIGINT");
      if (Date.now() > end) throw e;
    }
  }
}

/** udpRelay relays datagrams between one client and a server. While hole is set it loses them all. */
export async function udpRelay(to) {
  const relay = { hole: false, close: () => { front.close(); back.close(); } };
  const front = createSocket("udp4");
  const back = createSocket("udp4");
  let client;
  front.on("message", (m, from) => {
    client = from;
    if (!relay.hole) back.send(m, to, "127.0.0.1");
  });
  back.on("message", (m) => { if (client && !relay.hole) front.send(m, client.port, client.address); });
  front.bind(0, "127.0.0.1");
  await once(front, "listening");
  relay.port = front.address().port;
  return relay;
}

/**
 * tcpRelay relays connections. While hole is set no data passes, and new connections hang; while choked is
 * set no data passes to the client.
 */
export async function tcpRelay(to) {
  const sockets = new Set();
  const fars = new Set();
  const relay = {
    set hole(on) { for (const s of sockets) on ? s.pause() : s.resume(); this.shut = on; },
    set choked(on) { for (const s of fars) on ? s.pause() : s.resume(); },
    shut: false,
    close: () => { for (const s of sockets) s.destroy(); server.close(); },
  };
  const server = createServer((near) => {
    const far = connect(to, "127.0.0.1");
    fars.add(far);
    far.on("close", () => fars.delete(far));
    for (const [a, b] of [[near, far], [far, near]]) {
      sockets.add(a);
      a.on("data", (bytes) => b.write(bytes));
      a.on("error", () => {});
      a.on("close", () => { sockets.delete(a); b.destroy(); });
      if (relay.shut) a.pause();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  relay.port = server.address().port;
  return relay;
}
