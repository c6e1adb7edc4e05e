// Builds dist/: the client as one file of its own, and what TypeScript knows of it. Games embed the
// file, so it is committed: make web builds it anew, and a test checks that it is current.
//
//     node scripts/build.mjs [FILE]    # with a file it makes only that
import { execFileSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { minify } from "terser";

const file = path.resolve(process.argv[2] ?? fileURLToPath(new URL("../dist/netloop.js", import.meta.url)));
process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const bins = "../../node_modules/.bin";
const internal = await internalNames();
await bundle("src/index.ts", file, internal);
await bundle("src/protobuf.ts", file.replace(/netloop\.js$/, "protobuf.js"), internal);
for (const other of ["netgraph", "testing"]) await bundle(`src/${other}.ts`, file.replace(/netloop\.js$/, `${other}.js`));
if (process.argv.length < 3) {
  rmSync("dist/types", { recursive: true, force: true });
  execFileSync(path.join(bins, "tsc"), ["--project", "tsconfig.types.json"], { stdio: "inherit" });
  publish("index.d.ts");
  publish("protobuf.d.ts");
  publish("netgraph.d.ts");
  publish("testing.d.ts");
  rmSync("build/types", { recursive: true, force: true });
}

/**
 * Writes a file with all that it imports, minified by both: what one leaves the other finds. What terser calls unsafe is that
 * String(x) is the same as "" + x, and that nobody has changed what the language brings.
 */
async function bundle(entry, to, internal = []) {
  const mangleProps = internal.length > 0 ? new RegExp(`^(?:${internal.join("|")})$`) : undefined;
  const whole = await built(entry, { mangleProps, minify: true });
  const { code } = await minify(whole, {
    module: true,
    ecma: 2022,
    compress: { passes: 3, pure_getters: true, unsafe: true, unsafe_arrows: true, inline: 1, reduce_funcs: false, lhs_constants: false },
    format: { preamble: "// The netloop client, built from clients/ts: see there for its source and license." },
  });
  writeFileSync(to, `${code}\n`);
}

async function built(entry, options) {
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, write: false, format: "esm", target: "es2022", ...options });
  return outputFiles[0].text;
}

/**
 * The names of properties that nobody outside sees, which are made short: all but those of the API,
 * of the language, of what is used of the browser and of Node, and of netloop.SpawnKey in a state.
 */
async function internalNames() {
  const taken = new Set(["Step", "N", "unref"]);
  const code = (f) => readFileSync(f, "utf8").replace(/\/\*[^]*?\*\//g, "").replace(/(^|\s)\/\/.*/gm, "");
  const takeOf = (pattern, text) => { for (const [, name] of text.matchAll(pattern)) taken.add(name); };
  const take = (pattern, files) => files.forEach((f) => takeOf(pattern, code(f)));
  const among = (dir, pattern) => readdirSync(dir, { recursive: true }).filter((f) => pattern.test(f)).map((f) => path.join(dir, f));
  const api = ["src/api.ts", "src/schema.ts"];
  const surroundings = ["src/protobuf.ts", "src/connect.ts", ...among("src/net", /\.ts$/)];
  const language = among("../../node_modules/@typescript", /lib\.es(5|20(1[5-9]|2[0-2]))(\..*)?\.d\.ts$/);
  const members = /^\s*(?:(?:readonly|get|set|static|export|declare|const|var|function) )*([\w$]+)\??\s*[(:<,=]/gm;
  const [dom] = among("../../node_modules/@typescript", /lib\.dom\.d\.ts$/);
  for (const [text] of code(dom).matchAll(/^interface (?:AbortController|AbortSignal|Console|Performance|TextDecoder|TextEncoder)\b[^]*?^}/gm)) takeOf(members, text);
  take(members, [...language, ...api]);
  take(/[{;(,]\s*(?:readonly )?([\w$]+)\??:/g, [...api, ...surroundings]);
  take(/"(\w+)"/g, api);
  take(/\.([\w$]+)/g, surroundings);
  const names = (await built("src/index.ts", { minify: true })).match(/(?<=[.{,;])[A-Za-z_$][\w$]*/g);
  return [...new Set(names)].filter((name) => name.length > 2 && !taken.has(name)).sort();
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
