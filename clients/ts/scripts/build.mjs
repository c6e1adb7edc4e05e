// Builds dist/: the client as one file of its own, and what TypeScript knows of it. Games embed the
// file, so it is committed: make web builds it anew, and a test checks that it is current.
//
//     node scripts/build.mjs ESBUILD [FILE]    # with a file it makes only that
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const [esbuild, file = "dist/netloop.js"] = process.argv.slice(2);
const run = (program, ...args) => execFileSync(program, args, { stdio: "inherit" });
const names = internal();
bundle("src/index.ts", file);
bundle("src/protobuf.ts", file.replace(/netloop\.js$/, "protobuf.js"));
if (process.argv.length < 4) {
  rmSync("dist/types", { recursive: true, force: true });
  run(esbuild.replace(/esbuild$/, "tsc"), "--project", "tsconfig.types.json");
  publish("index.d.ts");
  publish("protobuf.d.ts");
  rmSync("build/types", { recursive: true, force: true });
}

function bundle(entry, to) {
  run(
    esbuild,
    entry,
    `--outfile=${to}`,
    "--bundle",
    "--minify",
    `--mangle-props=^(?:${names.join("|")})$`,
    "--format=esm",
    "--target=es2022",
    "--legal-comments=none",
    "--log-level=warning",
    "--banner:js=// The netloop client, built from clients/ts: see there for its source and license.",
  );
}

/**
 * The names of properties that nobody outside sees, which are made short: all but those of the API,
 * of the language, of what is used of the browser, and of netloop.Born in a state.
 */
function internal() {
  const words = (text) => text.match(/[A-Za-z_$][\w$]*/g) ?? [];
  const code = (text) => text.replace(/\/\*[^]*?\*\//g, "").replace(/\/\/.*/g, "");
  const lib = path.join(path.dirname(esbuild), "../@typescript");
  const taken = new Set(["Step", "N"]);
  for (const file of readdirSync(lib, { recursive: true })) {
    if (/lib\.es(5|20(1[5-9]|2[0-2]))(\..*)?\.d\.ts$/.test(file)) words(code(readFileSync(path.join(lib, file), "utf8"))).forEach((w) => taken.add(w));
  }
  const seen = ["src/api.ts", "src/schema.ts", "src/connect.ts", "src/protobuf.ts", ...readdirSync("src/net").map((f) => `src/net/${f}`)];
  for (const file of seen) words(readFileSync(file, "utf8")).forEach((w) => taken.add(w));
  const out = path.join(mkdtempSync(path.join(tmpdir(), "netloop-")), "all.js");
  run(esbuild, "src/index.ts", `--outfile=${out}`, "--bundle", "--minify", "--format=esm", "--target=es2022", "--log-level=warning");
  const used = (readFileSync(out, "utf8").match(/[.{,;][A-Za-z_$][\w$]*/g) ?? []).map((s) => s.slice(1));
  rmSync(path.dirname(out), { recursive: true });
  return [...new Set(used)].filter((name) => name.length > 2 && !taken.has(name)).sort();
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
