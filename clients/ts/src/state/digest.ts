// Digests (docs/WIRE.md, "Digest").

import { ByteWriter } from "../wire/bytes.js";
import { TWO32 } from "../wire/numbers.js";
import { writeCells, writeUnsigned } from "../codec/value.js";
import type { ReplicatedObject } from "./object.js";

/** FNV-1a of 64 bits, in two halves. */
class Fnv {
  hi = 0;
  lo = 0;

  begin(): void {
    this.hi = 0xcbf29ce4;
    this.lo = 0x84222325;
  }

  add(bytes: Uint8Array, length: number): void {
    let { hi, lo } = this;
    for (let i = 0; i < length; i++) {
      lo = (lo ^ bytes[i]) >>> 0;
      const product = lo * 0x1b3; // the prime is 2^40 + 0x1b3
      hi = (Math.imul(hi, 0x1b3) + ((product / TWO32) | 0) + (lo << 8)) >>> 0;
      lo = product >>> 0;
    }
    this.hi = hi;
    this.lo = lo;
  }
}

/** Calculates the digest of objects. */
export class Digest {
  hi = 0;
  lo = 0;
  private readonly bytes = new ByteWriter();
  private readonly value = new Fnv();
  private readonly all = new Fnv();

  /** Computes the digest of the objects in some slots, in their order. */
  of(slots: readonly (ReplicatedObject | undefined)[]): void {
    const { all, bytes } = this;
    all.begin();
    for (let slot = 0; slot < slots.length; slot++) {
      const o = slots[slot];
      if (o === undefined) {
        continue;
      }
      this.ofObject(o);
      bytes.reset();
      bytes.u32(o.id % TWO32);
      bytes.u32(slot);
      bytes.u32(o.lifetime % TWO32);
      bytes.u32(this.value.lo);
      bytes.u32(this.value.hi);
      all.add(bytes.bytes, bytes.length);
    }
    this.hi = all.hi;
    this.lo = all.lo;
  }

  private ofObject(o: ReplicatedObject): void {
    this.value.begin();
    const b = hashed(o, this.bytes);
    this.value.add(b.bytes, b.length);
  }
}

/** Writes the bytes of an object that its digest covers. */
export function hashed(o: ReplicatedObject, w: ByteWriter): ByteWriter {
  const v = o.newest;
  w.reset();
  w.uvarint(o.class.index);
  if (o.mask !== undefined) {
    for (let i = 0; i < o.mask.length; i += 8) {
      let bits = 0;
      for (let k = 0; k < 8 && i + k < o.mask.length; k++) {
        bits |= o.mask[i + k] << k;
      }
      w.u8(bits);
    }
  }
  writeUnsigned(w, v.owner);
  writeCells(w, o.class.layout, v.n, 0, v.x, 0, o.mask);
  return w;
}
