// The examples of docs/WIRE.md, read from the page itself: hexadecimal, and lines of bits.

import { readFileSync } from "node:fs";

/** The bytes of an example. NETLOOP_ROOT is the folder of the repository. */
export function example(name: string): Uint8Array {
  const page = readFileSync(`${process.env.NETLOOP_ROOT ?? "../.."}/docs/WIRE.md`, "utf8");
  const text = page.split(`<!-- golden: ${name} -->\n\`\`\`\n`)[1]?.split("```")[0];
  if (text === undefined) {
    throw new Error(`the page has no example ${name}`);
  }
  const out: number[] = [];
  let bits = "";
  const flush = () => {
    for (; bits !== ""; bits = bits.slice(8)) {
      out.push(parseInt([...bits.slice(0, 8)].reverse().join(""), 2));
    }
  };
  for (const line of text.split("\n")) {
    const content = line.split("#")[0].replace(/\s/g, "");
    if (content.startsWith("bits")) {
      bits += content.slice(4);
      continue;
    }
    flush();
    for (let i = 0; i < content.length; i += 2) {
      out.push(parseInt(content.slice(i, i + 2), 16));
    }
  }
  flush();
  return Uint8Array.from(out);
}
