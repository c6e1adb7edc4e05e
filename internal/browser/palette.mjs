// Screenshots with a palette, which take half of the bytes.
import { crc32, deflateSync } from "node:zlib";
import gifenc from "gifenc";
import { PNG } from "pngjs";

/** indexed returns a PNG of at most 256 colors. */
export function indexed(png) {
  const { width, height, data } = PNG.sync.read(png);
  const palette = gifenc.quantize(data, 256);
  const colors = gifenc.applyPalette(data, palette);
  const rows = Buffer.alloc((width + 1) * height); // Each begins with the number of its filter: none.
  for (let y = 0; y < height; y++) rows.set(colors.subarray(y * width, (y + 1) * width), y * (width + 1) + 1);
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width);
  head.writeUInt32BE(height, 4);
  head.set([8, 3], 8); // 8 bits, indices of a palette
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", head), chunk("PLTE", Buffer.from(palette.flatMap((c) => c.slice(0, 3)))),
    chunk("IDAT", deflateSync(rows, { level: 9 })), chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type), data]), size = Buffer.alloc(4), sum = Buffer.alloc(4);
  size.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([size, body, sum]);
}
