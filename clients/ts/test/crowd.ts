// Plays the packets that one client of a crowd has received, and prints the time that this has taken.
// The command line names the file.
//
//     node --expose-gc --single-threaded --max-semi-space-size=512 crowd.mjs FILE

import { readFileSync } from "node:fs";
import { packetsOf, percentile, Player } from "./player.js";

declare const gc: () => void;

const packets = packetsOf(readFileSync(process.argv[2]));
const WARM = 120; // frames until the code is compiled
const frames = new Float64Array(packets.length);
const times = new Float64Array(packets.length);

/** Plays all packets, and records the times of frames after the warm-up. */
function play(): { frames: number; packets: number; digests: number; garbage: number; growth: number } {
  const p = new Player(packets);
  let [frame, timed, count, spent] = [0, 0, 0, 0];
  let [before, held] = [0, 0];
  while (p.more) {
    const began = performance.now();
    const whole = p.packet();
    let took = performance.now() - began;
    if (frame >= WARM) times[timed++] = took;
    if (whole) {
      const then = performance.now();
      p.finish();
      took += performance.now() - then;
    }
    spent += took;
    if (whole) {
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
  return { frames: count, packets: timed, digests: p.digests, garbage, growth: process.memoryUsage().heapUsed - held };
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
