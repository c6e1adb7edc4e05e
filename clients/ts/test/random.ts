// Random numbers from a seed, for tests.

/** Mulberry32: small, and good enough to choose bytes with. */
export class Random {
  constructor(private state: number) {}

  /** A number from 0 to below 1. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0 to below n. */
  below(n: number): number {
    return Math.floor(this.next() * n);
  }

  bytes(n: number): Uint8Array {
    return Uint8Array.from({ length: n }, () => this.below(256));
  }

  /** A damaged copy of bytes. */
  damage(bytes: Uint8Array): Uint8Array {
    let b = Array.from(bytes);
    for (let i = 1 + this.below(3); i > 0; i--) {
      const at = this.below(b.length + 1);
      switch (this.below(5)) {
        case 0:
          b = b.slice(0, at);
          break;
        case 1:
          b.splice(at, 1);
          break;
        case 2:
          b.splice(at, 0, ...this.bytes(1 + this.below(9)));
          break;
        case 3:
          b[at] = [0, 1, 0x7f, 0x80, 0xff][this.below(5)];
          break;
        default:
          b[at] = (b[at] ?? 0) ^ (1 << this.below(8));
      }
    }
    return Uint8Array.from(b);
  }
}
