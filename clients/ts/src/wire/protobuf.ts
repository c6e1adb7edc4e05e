// The envelopes of the wire are protobuf, and hot: they are walked and written by hand, without an
// object for each. Numbers are doubles: what is beyond 2^53 loses its lowest bits, and nothing on
// the wire that the client calculates with is so large.

import { ByteReader, ByteWriter } from "./bytes.js";
import { beyond, refuse } from "./refusal.js";

/** How a field that this version knows travels; 0 is an unknown one. */
export const VARINT = 1;
export const SIZED = 2;
/** The field may not come twice; with STRICT it may not come with another wire type either. */
export const ONCE = 4;
export const STRICT = 8;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** The text that bytes are. */
export function textOf(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    return refuse("a text that is no UTF-8");
  }
}

const EMPTY = new Uint8Array(0);

/** The most bytes of a text for people. */
export const MAX_TEXT = 512;

/** Cuts a text so that it takes at most MAX_TEXT bytes. */
export function clip(text: string): string {
  let n = Math.min(text.length, MAX_TEXT);
  while (encoder.encode(text.slice(0, n)).length > MAX_TEXT) n--;
  const last = text.charCodeAt(n - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? n - 1 : n);
}

/**
 * Walks the known fields of a message in the order in which they come, and skips the others. Bytes
 * that are no message throw a Refusal.
 *
 *     for (const w = new Walker(bytes, layout); w.next(); ) switch (w.num) { case 1: … }
 */
export class Walker extends ByteReader {
  num = 0;
  /** Of a varint. */
  value = 0;
  /** Of a sized field; it points into the message. */
  body: Uint8Array = EMPTY;
  /** Where the field begins. */
  start = 0;
  private seen = 0;

  constructor(
    message: Uint8Array,
    private known: readonly number[],
  ) {
    super();
    this.open(message, 0, message.length);
  }

  next(): boolean {
    while (this.left() > 0) {
      this.start = this.at;
      const wire = this.tag();
      this.field(wire, 0);
      if (this.takes(this.known[this.num] ?? 0, wire)) return true;
    }
    return false;
  }

  /** Reads what a field begins with, and returns how it travels. */
  private tag(): number {
    const tag = this.uvarint();
    this.num = Math.floor(tag / 8);
    return tag > 0xffffffff || this.num === 0 ? beyond() : tag & 7;
  }

  private takes(how: number, wire: number): boolean {
    const fits = (wire === 0 && how & VARINT) || (wire === 2 && how & SIZED);
    const bit = fits ? 1 << this.num : 0;
    if (fits ? how & ONCE && this.seen & bit : how & STRICT) refuse("a field that may not be");
    this.seen |= bit;
    return bit !== 0;
  }

  /** Goes over the content of a field, or over a group, which nobody writes any more. */
  private field(wire: number, depth: number): void {
    switch (wire) {
      case 0:
        this.value = this.uvarint();
        break;
      case 1:
      case 5:
        this.skip(wire === 1 ? 8 : 4);
        break;
      case 2: {
        const n = this.uvarint();
        const at = this.skip(n);
        this.body = this.bytes.subarray(at, at + n);
        break;
      }
      case 3: {
        const { num } = this;
        for (let inner = this.tag(); inner !== 4; inner = this.tag()) {
          if (depth > 64) beyond();
          this.field(inner, depth + 1);
        }
        if (this.num !== num) beyond();
        break;
      }
      default:
        beyond();
    }
  }
}

/** Writes protobuf. */
export class Writer extends ByteWriter {
  /** What was written, valid until the next write. */
  peek(): Uint8Array {
    return this.bytes.subarray(0, this.length);
  }

  /** A scalar, which is left out if it is zero. */
  number(num: number, v: number | boolean): this {
    if (v) {
      this.uvarint(num * 8);
      this.uvarint(Number(v));
    }
    return this;
  }

  /** Bytes or a message, even if there are none. */
  sized(num: number, b: Uint8Array): this {
    this.uvarint(num * 8 + 2);
    this.uvarint(b.length);
    this.raw(b);
    return this;
  }

  /** Bytes, which are left out if there are none. */
  body(num: number, b: Uint8Array): this {
    return b.length > 0 ? this.sized(num, b) : this;
  }

  text(num: number, s: string): this {
    return this.body(num, encoder.encode(s));
  }
}

/** How many bytes the varint of a number takes. */
export function varintSize(v: number): number {
  let n = 1;
  for (; v >= 128; n++) v = Math.floor(v / 128);
  return n;
}
