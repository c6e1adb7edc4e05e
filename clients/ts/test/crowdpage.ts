// Plays the packets that one client of a crowd has received in a page, a snapshot in each frame that the
// browser draws, as a game does: internal/browser/crowd.mjs opens the page in Chromium.

import { packetsOf, percentile, Player } from "./player.js";

declare const gc: () => void;

const WARM = 120; // frames until the code is compiled
const HALF = 1800;

/** Plays all packets once, and returns the times of frames after the warm-up. */
async function play(file: string) {
  const packets = packetsOf(new Uint8Array(await (await fetch(file)).arrayBuffer()));
  const times = new Float64Array(packets.length);
  const player = new Player(packets);
  const heap = () => (gc(), (performance as any).memory.usedJSHeapSize as number);
  let [count, held, half, began] = [-WARM, 0, 0, 0];
  await new Promise<void>((done, failed) => {
    const frame = () => {
      if (!player.more) return done();
      if (count === 0) {
        held = heap();
        began = performance.now();
      }
      if (count === HALF) half = heap();
      const then = performance.now();
      try {
        player.frame();
      } catch (error) {
        return failed(error);
      }
      const took = performance.now() - then;
      if (count >= 0) times[count] = took;
      count++;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  const seconds = (performance.now() - began) / 1000;
  return {
    frames: count,
    seconds,
    digests: player.digests,
    frameP50: percentile(times, count, 50),
    frameP99: percentile(times, count, 99),
    growth: heap() - held,
    growthOfHalf: heap() - half,
  };
}

Object.assign(globalThis, { play });
