// Plays what a client of a crowd has received, frame by frame, and prints what that has taken. The
// file is named on the command line: each packet behind its length, four bytes, lowest first.
//
//     node --expose-gc --single-threaded --max-semi-space-size=512 crowd.mjs FILE

import { readFileSync } from "node:fs";
import { Replica } from "../src/state/replica.js";
import { classOf } from "./types.js";

declare const gc: () => void;

const bytes = readFileSync(process.argv[2]);
const packets: Uint8Array[] = [];
for (let at = 0; at < bytes.length; ) {
  const size = bytes.readUInt32LE(at);
  packets.push(new Uint8Array(bytes.subarray(at + 4, at + 4 + size)));
  at += 4 + size;
}

const c = classOf("{X float32 quant=1/512 steps=-16384:16384; Y float32 quant=1/512 steps=-16384:16384; Z float32 quant=1/512 steps=0:8192; Rot quat bits=9}");
const WARM = 120; // frames until the code is compiled
const frames = new Float64Array(packets.length);
const times = new Float64Array(packets.length);
const flat = new Float64Array(c.flatSize);

/** The nth percentile. */
function percentile(of: Float64Array, count: number, n: number): number {
  return of.slice(0, count).sort()[Math.min(count - 1, Math.floor((count * n) / 100))];
}

/** Plays everything, and counts frames from the warm ones on. */
function play(): { frames: number; packets: number; digests: number; garbage: number; growth: number } {
  const r = new Replica({ classes: [c], methods: [], input: undefined }, 1);
  let [frame, timed, count, digests, spent] = [0, 0, 0, 0, 0];
  let [before, held] = [0, 0];
  for (let i = 0; i < packets.length; i++) {
    const began = performance.now();
    const got = r.apply(packets[i]);
    let took = performance.now() - began;
    if (got.kind !== "applied" || got.digest === "unequal") {
      throw new Error(`${got.kind} ${got.why} ${got.digest}`);
    }
    if (frame >= WARM) times[timed++] = took;
    if (got.whole) {
      digests += got.digest === "equal" ? 1 : 0;
      const then = performance.now();
      const changes = r.changes();
      for (let k = 0; k < changes.length; k++) changes[k].object.flat(flat);
      r.acknowledgement();
      took += performance.now() - then;
    }
    spent += took;
    if (got.whole) {
      if (frame++ >= WARM) frames[count++] = spent;
      spent = 0;
      if (frame === WARM) {
        gc();
        before = held = process.memoryUsage().heapUsed;
      }
    }
  }
  const garbage = process.memoryUsage().heapUsed - before;
  gc();
  return { frames: count, packets: timed, digests, garbage, growth: process.memoryUsage().heapUsed - held };
}

play();
const got = play();
console.log(
  JSON.stringify({
    frames: got.frames,
    packets: got.packets,
    digests: got.digests,
    packetP50: percentile(times, got.packets, 50),
    packetP99: percentile(times, got.packets, 99),
    frameP50: percentile(frames, got.frames, 50),
    frameP99: percentile(frames, got.frames, 99),
    garbagePerPacket: got.garbage / got.packets,
    growth: got.growth,
  }),
);
