/** Numbers this far below the newest are too old to be tracked. */
export const SPAN = 1024;

/** Records which of the newest numbers have arrived, in any order. Numbers begin at 1. */
export class Window {
  newest = 0;
  private readonly seen = new Uint8Array(SPAN); // by number modulo SPAN

  /** Adds a number, and reports whether it is new: a number that is too old is not. */
  add(n: number): boolean {
    if (n <= this.newest - SPAN || n > Number.MAX_SAFE_INTEGER) return false;
    if (n > this.newest + SPAN) {
      this.seen.fill(0);
      this.newest = n;
    }
    while (this.newest < n) this.seen[++this.newest % SPAN] = 0;
    const isNew = !this.has(n);
    this.seen[n % SPAN] = 1;
    return isNew;
  }

  /** Reports whether a number has arrived that is less than SPAN below the newest. */
  has(n: number): boolean {
    return this.seen[n % SPAN] === 1;
  }
}
