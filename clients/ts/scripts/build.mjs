// Builds dist/: the client as one file of its own, and what TypeScript knows of it. Games embed the
// file, so it is committed: make web builds it anew, and a test checks that it is current.
//
//     node scripts/build.mjs ESBUILD [FILE]    # with a file it makes only that
import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const [esbuild, file = "dist/netloop.js"] = process.argv.slice(2);
const run = (program, ...args) => execFileSync(program, args, { stdio: "inherit" });
run(
  esbuild,
  "src/index.ts",
  `--outfile=${file}`,
  "--bundle",
  "--minify",
  "--format=esm",
  "--target=es2022",
  "--legal-comments=none",
  "--log-level=warning",
  "--banner:js=// The netloop client, built from clients/ts: see there for its source and license.",
);
if (process.argv.length < 4) {
  rmSync("dist/types", { recursive: true, force: true });
  run(esbuild.replace(/esbuild$/, "tsc"), "--project", "tsconfig.types.json");
  publish("index.d.ts");
  rmSync("build/types", { recursive: true, force: true });
}

/** Copies the declarations of a file, and of those that it names: the rest is nobody's business. */
function publish(file, done = new Set()) {
  if (done.has(file)) return;
  done.add(file);
  cpSync(path.join("build/types", file), path.join("dist/types", file));
  const text = readFileSync(path.join("build/types", file), "utf8").replace(/\/\*[^]*?\*\//g, "");
  for (const [, other] of text.matchAll(/"(\.[^"]+)\.js"/g)) {
    publish(path.join(path.dirname(file), `${other}.d.ts`), done);
  }
}
