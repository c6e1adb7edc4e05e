// Builds cards.js: the page's program as one file, beside the client, which every server with pages
// serves as netloop.js. The server's binary embeds it, so it is committed: make web builds it anew,
// and a test checks that it is current.
//
//     node scripts/build.mjs [FILE]
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const served = { name: "served", setup: (b) => b.onResolve({ filter: /^@netloop\/client$/ }, () => ({ path: "./netloop.js", external: true })) };
await build({
  absWorkingDir: root,
  entryPoints: ["src/main.ts"],
  outfile: path.resolve(process.argv[2] ?? path.join(root, "cards.js")),
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  plugins: [served],
  banner: { js: "// The card game's page, built from examples/cards/web: see there for its source." },
});
