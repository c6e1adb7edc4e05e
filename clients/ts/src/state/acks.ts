/** What `acks` of the next datagram says: docs/WIRE.md, "Acknowledgements". */
export interface Acknowledgement {
  /** The highest packet that is acknowledged. */
  newest: number;
  /** Lengths of alternating runs from there downwards. */
  runs: readonly number[];
}

const WINDOW = 1024; // ids that the runs may span
const MOST_RUNS = 63;

/** Remembers which packets are acknowledged, as far back as anybody is told. */
export class Acks {
  private newest = 0;
  private readonly seen = new Uint8Array(WINDOW); // by id modulo WINDOW
  private readonly runs: number[] = [];
  private readonly said: Acknowledgement = { newest: 0, runs: this.runs };

  clear(): void {
    this.newest = 0;
    this.seen.fill(0);
  }

  add(id: number): void {
    if (id > this.newest) {
      const skipped = Math.min(id - this.newest, WINDOW);
      for (let i = 1; i <= skipped; i++) {
        this.seen[(this.newest + i) % WINDOW] = 0;
      }
      if (skipped === WINDOW) this.seen.fill(0);
      this.newest = id;
    } else if (id <= this.newest - WINDOW) {
      return;
    }
    this.seen[id % WINDOW] = 1;
  }

  /** What is to be said, undefined if there is nothing. */
  say(): Acknowledgement | undefined {
    if (this.newest === 0) {
      return undefined;
    }
    const { runs } = this;
    const lowest = Math.max(1, this.newest - WINDOW + 1);
    let count = 0;
    let length = 0;
    let is = 1;
    for (let id = this.newest; id >= lowest && count < MOST_RUNS; id--) {
      if (this.seen[id % WINDOW] !== is) {
        runs[count++] = length;
        length = 0;
        is = 1 - is;
      }
      length++;
    }
    if (is === 1 && count < MOST_RUNS) {
      runs[count++] = length;
    }
    runs.length = count;
    this.said.newest = this.newest;
    return this.said;
  }
}
