// The envelopes of the wire are protobuf, and hot: they are walked and written by hand, without an
// object for each. Numbers are doubles: what is beyond 2^53 loses its lowest bits, and nothing on
// the wire that the client calculates with is so large.

/** How a field that this version knows travels; 0 is an unknown one. */
export const VARINT = 1;
export const SIZED = 2;
/** The field may not come twice; with STRICT it may not come with another wire type either. */
export const ONCE = 4;
export const STRICT = 8;

const utf8 = new TextDecoder("utf-8", { fatal: true });
const encoder = new TextEncoder();

/** The text that bytes are, or undefined if they are none. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
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
 * Walks the known fields of a message in the order in which they come, and skips the others:
 *
 *     for (const w = new Walker(bytes, layout); w.next(); ) switch (w.num) { case 1: … }
 *     if (w.failed) …
 */
export class Walker {
  num = 0;
  /** Of a varint. */
  value = 0;
  /** Of a sized field; it points into the message. */
  bytes: Uint8Array = EMPTY;
  failed = false;
  /** Where the field begins. */
  start = 0;
  private seen = 0;
  private at: number;
  private end: number;

  constructor(
    private data: Uint8Array,
    private known: readonly number[],
  ) {
    this.at = 0;
    this.end = data.length;
  }

  fail(): void {
    this.failed = true;
  }

  next(): boolean {
    while (!this.failed && this.at < this.end) {
      this.start = this.at;
      const tag = this.varint();
      const wire = tag & 7;
      this.num = Math.floor(tag / 8);
      if (this.failed || tag > 0xffffffff || this.num === 0) {
        this.fail();
        return false;
      }
      const how = this.num < this.known.length ? this.known[this.num]! : 0;
      if (!this.field(wire)) return false;
      if (this.takes(how, wire)) return true;
    }
    return false;
  }

  private takes(how: number, wire: number): boolean {
    const fits = (wire === 0 && (how & VARINT) !== 0) || (wire === 2 && (how & SIZED) !== 0);
    if (!fits) {
      if (how & STRICT) this.fail();
      return false;
    }
    if (how & ONCE) {
      const bit = 1 << this.num;
      if (this.seen & bit) {
        this.fail();
        return false;
      }
      this.seen |= bit;
    }
    return true;
  }

  /** Goes over the content of a field. */
  private field(wire: number): boolean {
    switch (wire) {
      case 0:
        this.value = this.varint();
        break;
      case 2: {
        const n = this.varint();
        if (n > this.end - this.at) this.fail();
        if (this.failed) return false;
        this.bytes = this.data.subarray(this.at, this.at + n);
        this.at += n;
        break;
      }
      case 1:
      case 5:
        this.at += wire === 1 ? 8 : 4;
        if (this.at > this.end) this.fail();
        break;
      case 3:
        this.group(this.num, 0);
        break;
      default:
        this.fail();
    }
    return !this.failed;
  }

  /** Goes over a group, which nobody writes any more. */
  private group(num: number, depth: number): void {
    while (!this.failed) {
      const tag = this.varint();
      const wire = tag & 7;
      const inner = Math.floor(tag / 8);
      if (this.failed || depth > 64 || inner === 0 || tag > 0xffffffff) return this.fail();
      if (wire === 4) {
        if (inner !== num) this.fail();
        return;
      }
      if (wire === 3) this.group(inner, depth + 1);
      else this.field(wire);
    }
  }

  private varint(): number {
    let v = 0;
    let scale = 1;
    for (let i = 0; i < 10; i++) {
      if (this.at >= this.end) break;
      const b = this.data[this.at++]!;
      if (i === 9 && b > 1) break;
      v += (b & 0x7f) * scale;
      if (b < 0x80) return v;
      scale *= 128;
    }
    this.fail();
    return 0;
  }
}

/** Writes protobuf into one piece of memory that grows. */
export class Writer {
  private buf: Uint8Array;
  length = 0;

  constructor(capacity = 256) {
    this.buf = new Uint8Array(capacity);
  }

  reset(): this {
    this.length = 0;
    return this;
  }

  /** What was written, as a copy. */
  done(): Uint8Array {
    return this.buf.slice(0, this.length);
  }

  /** What was written, valid until the next write. */
  peek(): Uint8Array {
    return this.buf.subarray(0, this.length);
  }

  private grow(n: number): void {
    if (this.length + n <= this.buf.length) return;
    const larger = new Uint8Array(Math.max(2 * this.buf.length, this.length + n));
    larger.set(this.peek());
    this.buf = larger;
  }

  uvarint(v: number): void {
    this.grow(10);
    while (v >= 128) {
      this.buf[this.length++] = (v % 128) | 128;
      v = Math.floor(v / 128);
    }
    this.buf[this.length++] = v;
  }

  raw(b: Uint8Array): void {
    this.grow(b.length);
    this.buf.set(b, this.length);
    this.length += b.length;
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
  bytes(num: number, b: Uint8Array): this {
    return b.length > 0 ? this.sized(num, b) : this;
  }

  text(num: number, s: string): this {
    return s ? this.sized(num, encoder.encode(s)) : this;
  }
}

/** How many bytes the varint of a number takes. */
export function varintSize(v: number): number {
  let n = 1;
  for (; v >= 128; n++) v = Math.floor(v / 128);
  return n;
}
