const WINDOW = 1024;

/** Recognises datagrams that were seen before, or that are too old to tell. */
export class Duplicates {
  private newest = 0;
  private bits = new Uint32Array(WINDOW / 32);

  private raise(n: number): void {
    if (n - this.newest >= WINDOW) this.bits.fill(0);
    else for (let i = this.newest + 1; i <= n; i++) this.bits[(i % WINDOW) >> 5]! &= ~(1 << i % 32);
    this.newest = n;
  }

  /** Puts in a number within reach, and reports whether it was not there. */
  private mark(n: number): boolean {
    const i = (n % WINDOW) >> 5;
    const bit = 1 << n % 32;
    const was = this.bits[i]! & bit;
    this.bits[i]! |= bit;
    return was === 0;
  }

  fresh(n: number): boolean {
    if (n > Number.MAX_SAFE_INTEGER) return false;
    if (n > this.newest) this.raise(n);
    else if (this.newest - n >= WINDOW) return false;
    return this.mark(n);
  }
}
