// Builds dist/: the client as one file of its own, and what TypeScript knows of it. Games embed
// the file, so it is committed; "make generate" builds it anew, and CI checks that it is current.
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
process.chdir(root);
await build({
  entryPoints: ["src/index.ts"],
  outfile: "dist/netloop.js",
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  banner: { js: "// The netloop client. Built from clients/ts: do not edit." },
});
rmSync("dist/types", { recursive: true, force: true });
const tsc = fileURLToPath(import.meta.resolve("typescript/package.json")).replace(/package\.json$/, "bin/tsc");
execFileSync(process.execPath, [tsc, "-p", "tsconfig.types.json"], { stdio: "inherit" });
