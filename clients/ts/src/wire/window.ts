/** Numbers so far below the newest are too old to tell whether they have come. */
export const SPAN = 1024;

/** Remembers which of the newest numbers have come, in whatever order they do. They begin at 1. */
export class Window {
  newest = 0;
  private readonly seen = new Uint8Array(SPAN); // by number modulo SPAN

  /** Puts a number in, and reports whether it is new: one that nobody can tell of is not. */
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

  /** Whether a number has come that is less than SPAN below the newest. */
  has(n: number): boolean {
    return this.seen[n % SPAN] === 1;
  }
}
