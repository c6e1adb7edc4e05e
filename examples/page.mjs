// Builds the page of an example as one file, beside the client's modules, which every server with
// pages serves: netloop.js and others. The server's binary embeds it, so it is committed: make web builds it anew, and a
// test checks that it is current.
//
//     node examples/page.mjs arena [FILE]
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const [name, file] = process.argv.slice(2);
const root = fileURLToPath(new URL(`${name}/web/`, import.meta.url));
const client = /^@netloop\/client(?:\/(\w+))?$/;
const served = { name: "served", setup: (b) => b.onResolve({ filter: client }, (m) => ({ path: `./${client.exec(m.path)[1] ?? "netloop"}.js`, external: true })) };
await build({
  absWorkingDir: root,
  entryPoints: ["src/main.ts"],
  outfile: path.resolve(file ?? path.join(root, `${name}.js`)),
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  plugins: [served],
  banner: { js: `// The page of examples/${name}, built from its folder web: see there for its source.` },
});
