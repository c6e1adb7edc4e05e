// Builds examples/phaser as an author would: a project of Vite in a folder of its own, with the client
// installed from its packed file.
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const modules = path.join(root, "node_modules");

/** Project is an installed and built project. */
export class Project {
  /** make makes the project; undefined without Vite and Phaser. */
  static async make() {
    const vite = await import("vite").catch(() => undefined);
    if (!vite || !readdirSync(modules).includes("phaser")) return undefined;
    const p = new Project();
    p.vite = vite;
    p.dir = mkdtempSync(path.join(tmpdir(), "netloop-vite-"));
    const from = path.join(root, "examples", "phaser");
    for (const name of ["index.html", "src", "tsconfig.json", "vite.config.js"]) cpSync(path.join(from, name), path.join(p.dir, name), { recursive: true });
    writeFileSync(path.join(p.dir, "package.json"), `{ "private": true, "type": "module" }`);
    await run("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", p.dir], { cwd: path.join(root, "clients", "ts") });
    const packed = readdirSync(p.dir).find((name) => name.endsWith(".tgz"));
    await run("npm", ["install", "--silent", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", `./${packed}`], { cwd: p.dir });
    p.client = path.join(p.dir, "node_modules", "@netloop", "client");
    for (const name of ["phaser", "vite"]) symlinkSync(path.join(modules, name), path.join(p.dir, "node_modules", name)); // Not packed anew each time.
    await run(process.execPath, [path.join(modules, "typescript", "bin", "tsc"), "-p", p.dir]);
    await vite.build({ root: p.dir, logLevel: "warn" });
    return p;
  }

  /** serve serves the pages at a port, with the headers and the connect.json of a game's pages. */
  async serve(port, game) {
    process.env.GAME = game;
    const policy = (await fetch(game)).headers.get("content-security-policy");
    this.server = await this.vite.preview({ root: this.dir, logLevel: "warn", preview: { host: "127.0.0.1", port, strictPort: true, headers: { "Content-Security-Policy": policy } } });
  }

  async remove() {
    await this.server?.close();
    rmSync(this.dir, { recursive: true });
  }
}

/** freePort returns a port that no program uses. */
export async function freePort() {
  const s = createServer().listen(0, "127.0.0.1");
  await once(s, "listening");
  const { port } = s.address();
  s.close();
  await once(s, "close");
  return port;
}
