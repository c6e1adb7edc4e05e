// Converts messages from a program's values to bytes, and back.

import { ByteReader, ByteWriter } from "../wire/bytes.js";
import { Refusal } from "../wire/refusal.js";
import type { Layout } from "./layout.js";
import { budget } from "./list.js";
import type { Message, MessageType } from "./schema.js";
import { show } from "./show.js";
import { readCells } from "./value.js";
import { mode, writeValue } from "./write.js";

const writer = new ByteWriter();
const reader = new ByteReader();

/**
 * Encodes a message. Missing fields are zero, and fields that the type lacks are left out;
 * quantised values are rounded and clamped. Throws a RangeError, with the path of the field, for
 * other values that the type cannot hold. With wraps, whole numbers wrap as they do on the server.
 */
export function encodeMessage(type: MessageType, value: unknown, wraps = false): Uint8Array {
  const { layout, codec } = type as Message;
  if (layout === undefined) {
    return codec === undefined ? (value as Uint8Array) : codec.encode(value);
  }
  writer.reset();
  mode.wraps = wraps;
  writeValue(writer, layout.root, value, "");
  return writer.done();
}

/** Decodes a message. Returns undefined for invalid bytes: never throws. */
export function decodeMessage(type: MessageType, bytes: Uint8Array): unknown {
  const { layout, codec } = type as Message;
  try {
    if (layout === undefined) {
      return codec === undefined ? bytes : codec.decode(bytes);
    }
    const { n, x } = cellsOf(layout, bytes);
    return show(layout.root, n, 0, x, 0);
  } catch {
    return undefined; // a Refusal, or an error of the game's own codec
  }
}

/** The cells of a message. Throws a Refusal for invalid bytes. */
export function cellsOf(layout: Layout, bytes: Uint8Array): { n: Float64Array; x: unknown[] } {
  const n = layout.zeroN.slice();
  const x = layout.zeroX.slice();
  reader.open(bytes, 0, bytes.length);
  budget.left = Infinity;
  readCells(reader, layout, n, 0, x, 0);
  if (reader.left() > 0) {
    throw new Refusal("trailing bytes");
  }
  return { n, x };
}
