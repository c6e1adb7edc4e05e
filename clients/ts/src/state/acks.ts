import { SPAN, Window } from "../wire/window.js";

/** The field `acks` of the next datagram: docs/WIRE.md, "Acknowledgements". */
export interface Acknowledgement {
  /** The highest acknowledged packet. */
  newest: number;
  /** Lengths of alternating runs from there downwards. */
  runs: readonly number[];
}

const MAX_RUNS = 63;

/** Records the acknowledged packets, as far back as acknowledgements reach. */
export class Acks {
  private packets = new Window();
  private readonly runs: number[] = [];
  private readonly result: Acknowledgement = { newest: 0, runs: this.runs };

  clear(): void {
    this.packets = new Window();
  }

  add(id: number): void {
    this.packets.add(id);
  }

  /** The acknowledgement to send, undefined if there is none. */
  next(): Acknowledgement | undefined {
    const { runs, packets } = this;
    const { newest } = packets;
    if (newest === 0) {
      return undefined;
    }
    let count = 0;
    let length = 0;
    let is = true;
    for (let id = newest; id > Math.max(0, newest - SPAN) && count < MAX_RUNS; id--) {
      if (packets.has(id) !== is) {
        runs[count++] = length;
        length = 0;
        is = !is;
      }
      length++;
    }
    if (is && count < MAX_RUNS) {
      runs[count++] = length;
    }
    runs.length = count;
    this.result.newest = newest;
    return this.result;
  }
}
