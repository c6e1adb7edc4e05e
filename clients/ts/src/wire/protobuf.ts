// The envelopes of the wire are protobuf, and on the hot path: they are read and written by hand,
// without an object for each. Numbers are doubles: those beyond 2^53 lose their lowest bits, and no
// number of the wire that the client calculates with is so large.

import { ByteReader, ByteWriter } from "./bytes.js";
import { outOfRange, refuse } from "./refusal.js";

/** The wire type of a known field; 0 is an unknown one. */
export const VARINT = 1;
export const SIZED = 2;
/** The field may not be repeated; with STRICT it may not have another wire type either. */
export const ONCE = 4;
export const STRICT = 8;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** Decodes UTF-8, or throws a Refusal. */
export function textOf(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    return refuse("text is not UTF-8");
  }
}

const EMPTY = new Uint8Array(0);

/** The maximum number of bytes of an error text. */
export const MAX_TEXT = 512;

/** Cuts a text so that it takes at most MAX_TEXT bytes. */
export function clip(text: string): string {
  let n = Math.min(text.length, MAX_TEXT);
  while (encoder.encode(text.slice(0, n)).length > MAX_TEXT) n--;
  const last = text.charCodeAt(n - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? n - 1 : n);
}

/**
 * Walks the known fields of a message in their order, and skips the others. Invalid bytes throw a
 * Refusal.
 *
 *     for (const w = new Walker(bytes, layout); w.next(); ) switch (w.num) { case 1: … }
 */
export class Walker extends ByteReader {
  num = 0;
  /** Whether the field is sized, with a body; otherwise it is a varint, with a value. */
  sized = false;
  value = 0;
  /** The content of a sized field; it points into the message. */
  body: Uint8Array = EMPTY;
  /** The position of the field. */
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
      this.sized = wire === 2;
      if (this.takes(this.known[this.num] ?? 0, wire)) return true;
    }
    return false;
  }

  /** Reads a field's tag, and returns its wire type. */
  private tag(): number {
    const tag = this.uvarint();
    this.num = Math.floor(tag / 8);
    return tag > 0xffffffff || this.num === 0 ? outOfRange() : tag & 7;
  }

  private takes(how: number, wire: number): boolean {
    const fits = (wire === 0 && how & VARINT) || (wire === 2 && how & SIZED);
    const bit = fits ? 1 << this.num : 0;
    if (fits ? how & ONCE && this.seen & bit : how & STRICT) refuse("unexpected field");
    this.seen |= bit;
    return bit !== 0;
  }

  /** Skips or reads the content of a field; groups, which are obsolete, are skipped. */
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
          if (depth > 64) outOfRange();
          this.field(inner, depth + 1);
        }
        if (this.num !== num) outOfRange();
        break;
      }
      default:
        outOfRange();
    }
  }
}

/** Writes protobuf. */
export class Writer extends ByteWriter {
  /** The written bytes, valid until the next write. */
  peek(): Uint8Array {
    return this.bytes.subarray(0, this.length);
  }

  /** Writes a scalar, or omits it if it is zero. */
  number(num: number, v: number | boolean): this {
    if (v) {
      this.uvarint(num * 8);
      this.uvarint(Number(v));
    }
    return this;
  }

  /** Writes bytes or a message, even empty ones. */
  sized(num: number, b: Uint8Array): this {
    this.uvarint(num * 8 + 2);
    this.uvarint(b.length);
    this.raw(b);
    return this;
  }

  /** Writes bytes, or omits them if they are empty. */
  body(num: number, b: Uint8Array): this {
    return b.length > 0 ? this.sized(num, b) : this;
  }

  text(num: number, s: string): this {
    return this.body(num, encoder.encode(s));
  }
}
