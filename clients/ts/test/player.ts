// Plays the packets that one client of a crowd has received, frame by frame: the work of a page for each
// snapshot, without the drawing.

import { Replica } from "../src/state/replica.js";
import { classOf } from "../src/codec/text.js";

const cube = classOf("{X float32 quant=1/512 steps=-16384:16384; Y float32 quant=1/512 steps=-16384:16384; Z float32 quant=1/512 steps=0:8192; Rot quat bits=9}");

/** The packets of a file: each is behind its length, four bytes, lowest first. */
export function packetsOf(file: Uint8Array): Uint8Array[] {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const packets: Uint8Array[] = [];
  for (let at = 0; at < file.length; ) {
    const size = view.getUint32(at, true);
    packets.push(file.slice(at + 4, at + 4 + size));
    at += 4 + size;
  }
  return packets;
}

export class Player {
  /** Digests that agreed. */
  digests = 0;
  /** Packets that were played. */
  at = 0;
  private replica = new Replica({ classes: [cube], methods: [], input: undefined }, 1);
  private flat = new Float64Array(cube.flatSize);

  constructor(private packets: readonly Uint8Array[]) {}

  get more(): boolean {
    return this.at < this.packets.length;
  }

  /** Applies a packet, and reports whether its snapshot is whole. */
  packet(): boolean {
    const got = this.replica.apply(this.packets[this.at++]);
    if (got.kind !== "applied" || got.digest === "unequal") throw new Error(`${got.kind} ${got.why} ${got.digest}`);
    if (got.whole && got.digest === "equal") this.digests++;
    return got.whole;
  }

  /** Reads the changed objects, and makes the acknowledgement. */
  finish(): void {
    const changes = this.replica.changes();
    for (let k = 0; k < changes.length; k++) changes[k].object.flat(this.flat);
    this.replica.acknowledgement();
  }

  /** Plays the packets of a frame. */
  frame(): void {
    while (this.more && !this.packet());
    this.finish();
  }
}

/** The nth percentile of the first numbers. */
export function percentile(of: Float64Array, count: number, n: number): number {
  return of.slice(0, count).sort()[Math.min(count - 1, Math.floor((count * n) / 100))];
}
