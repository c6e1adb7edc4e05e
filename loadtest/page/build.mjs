// Builds the page of a load test as one file, which the load client embeds and fills with results. It
// is committed: make web builds it anew, and a test checks that it is current.
//
//     node loadtest/page/build.mjs [FILE]
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL(".", import.meta.url));
const { outputFiles } = await build({
  absWorkingDir: root,
  entryPoints: ["src/main.ts", "style.css"],
  outdir: root,
  bundle: true,
  format: "iife",
  target: "es2022",
  minify: true,
  legalComments: "none",
  write: false,
});
const made = (ext) => outputFiles.find((f) => f.path.endsWith(ext)).text.trim();
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const [script, style] = [made(".js"), made(".css")];
// Only this script and this style sheet are permitted, and no request.
const parts = { script, style, policy: `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data:; base-uri 'none'; form-action 'none'` };
const page = readFileSync(path.join(root, "index.html"), "utf8").replace(/\{\{(script|style|policy)\}\}/g, (_, name) => parts[name]);
writeFileSync(path.resolve(process.argv[2] ?? path.join(root, "report.html")), page);
