// The frame in which callbacks run, and the instants of its clocks.

import { Stage, type Frame } from "./api.js";

const NS = 1e6;

/** The milliseconds of an instant, on game time or, below 0, on scaled time. */
export function instantMs(instant: bigint | number): number {
  const t = BigInt(instant);
  return Number(t >= 0n ? t : -1n - t) / NS;
}

/** The time left until an instant. */
export function leftUntil(instant: bigint | number, gameTime: number, scaledTime: number): number {
  return instantMs(instant) - (BigInt(instant) >= 0n ? gameTime : scaledTime);
}

/** The nanoseconds of a time after another, at least 0, as the server adds them. */
function ns(time: number, ms: number): bigint {
  const at = BigInt(Math.round(time * NS)) + BigInt(Math.round(ms * NS));
  return at > 0n ? at : 0n;
}

/** The frame that the client changes. */
export class CurrentFrame implements Frame {
  now = 0;
  deltaMs = 0;
  tick = 0;
  gameTime = 0;
  scaledTime = 0;
  fixedStep = 0;
  fixedDeltaMs = 0;
  fraction = 0;
  stage: Stage = Stage.Update;

  left(deadline: bigint | number): number {
    return leftUntil(deadline, this.gameTime, this.scaledTime);
  }

  in(ms: number): bigint {
    return ns(this.gameTime, ms);
  }

  inScaled(ms: number): bigint {
    return -1n - ns(this.scaledTime, ms);
  }
}
