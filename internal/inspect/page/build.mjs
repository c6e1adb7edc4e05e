// Builds the inspector's page as one script. The server's binary embeds it, so it is committed: make
// web builds it anew, and a test checks that it is current.
//
//     node internal/inspect/page/build.mjs [FILE]
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL(".", import.meta.url));
await build({
  absWorkingDir: root,
  entryPoints: ["src/main.ts"],
  outfile: path.resolve(process.argv[2] ?? path.join(root, "inspect.js")),
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  banner: { js: "// The page of the inspector, built from src: see there for its source. Plots by uPlot (MIT), https://github.com/leeoniya/uPlot." },
});
