// The header of a state packet, before its bits (docs/WIRE.md, "State packets").

import { TWO32, TWO53 } from "../wire/numbers.js";
import type { ByteReader } from "../wire/bytes.js";
import { outOfRange, refuse } from "../wire/refusal.js";

export const CODER = 3;
export const MAX_PACKETS = 64;
export const MAX_SLOTS = 65536;

/**
 * The header of a packet. All fields but index, id and padding are the same in a whole snapshot.
 */
export class Header {
  flags = 0;
  index = 0;
  count = 0;
  tick = 0;
  behind = 0;
  left = 0;
  total = 0;
  id = 0;
  digestHi = 0;
  digestLo = 0;

  get padding(): number {
    return this.flags >> 5;
  }

  get hasDigest(): boolean {
    return (this.flags & 1) !== 0;
  }

  get isComplete(): boolean {
    return (this.flags & 2) !== 0;
  }

  /** Reads the header. near is a tick close to the packet's own. */
  read(r: ByteReader, near: number): void {
    if (r.u8() !== CODER) {
      refuse("unknown coder");
    }
    this.flags = r.u8();
    if ((this.flags & 0x10) !== 0 || (this.flags & 3) === 2) {
      refuse("unknown coder");
    }
    this.index = r.u8();
    this.count = r.u8();
    if (this.count < 1 || this.count > MAX_PACKETS || this.index >= this.count) {
      refuse("inconsistent packets");
    }
    this.tick = widen(r.u32(), near);
    this.behind = (this.flags & 4) !== 0 ? r.u8() : 0;
    this.left = this.total = 0;
    if ((this.flags & 8) !== 0) {
      this.left = r.u32();
      this.total = r.u32();
      if (this.left > this.total || this.total > MAX_SLOTS) {
        refuse("inconsistent packets");
      }
    }
    this.id = readNumber(r);
    this.digestLo = this.hasDigest ? r.u32() : 0;
    this.digestHi = this.hasDigest ? r.u32() : 0;
  }

  /** Reports whether another packet can be of the same snapshot. */
  fits(other: Header): boolean {
    return (
      (this.flags & 0x1f) === (other.flags & 0x1f) &&
      this.count === other.count &&
      this.tick === other.tick &&
      this.behind === other.behind &&
      this.left === other.left &&
      this.total === other.total &&
      this.digestHi === other.digestHi &&
      this.digestLo === other.digestLo
    );
  }
}

/** The number of a packet or record, which begins at 1. */
export function readNumber(r: ByteReader): number {
  const id = r.uvarint();
  return id > 0 && id < TWO53 ? id : outOfRange();
}

/** The tick with these low 32 bits that is nearest to another one. It is above 0. */
export function widen(low: number, near: number): number {
  const by = (low - (near % TWO32)) | 0;
  const tick = near + by < 0 ? low : near + by;
  return tick > 0 ? tick : outOfRange();
}

/** The tick that is n before another one. Ticks begin at 1. */
export function before(tick: number, n: number): number {
  return n < tick ? tick - n : outOfRange();
}
