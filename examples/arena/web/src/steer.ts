// The flight of a ship, as in ship.go: the server runs that code, and this page runs this, a little
// earlier. Numbers are rounded to float32 wherever Go has a float32, so that the results are equal.

import type { Frame } from "@netloop/client";

import type { Control, Ship, Shot } from "../schema.js";
import { size } from "./camera.js";

const f = Math.fround;

const thrust = 220; // acceleration, units per second
const drag = f(0.6); // share of the speed lost per second
const turnRate = 3;

/** reloadMs is the least time between two shots. */
const reloadMs = 250;
/** glowMs is how long a shot is visible. */
export const glowMs = 200;

/** steer flies a ship for a fixed step by its player's input, and reports whether it fires. */
export function steer(s: Ship, wish: Control, frame: Frame): boolean {
  s.Thrust = wish.Thrust;
  s.Turn = Math.max(-1, Math.min(wish.Turn, 1));
  fly(s, f(frame.fixedDeltaMs / 1000));
  const fallen = s.Hull === 0 && frame.left(s.Falls) <= 0;
  if (!wish.Fire || frame.left(s.Reload) > 0 || fallen) return false;
  s.Reload = frame.in(reloadMs);
  return true;
}

/** shot returns the beam of a shot that the ship fires in this step. */
export function shot(s: Ship, frame: Frame): Shot {
  return { X: s.X, Y: s.Y, Heading: s.Heading, End: frame.in(glowMs), Born: { Step: 0n, N: 0 } };
}

/** fly flies a ship by its controls for dt seconds, a float32. */
function fly(s: Ship, dt: number): void {
  s.Heading = f(s.Heading + f(f(s.Turn * turnRate) * dt));
  if (s.Heading < 0) s.Heading = f(s.Heading + f(2 * Math.PI));
  else if (s.Heading >= f(2 * Math.PI)) s.Heading = f(s.Heading - f(2 * Math.PI));
  if (s.Thrust) {
    s.VX = f(s.VX + f(f(f(Math.cos(s.Heading)) * thrust) * dt));
    s.VY = f(s.VY + f(f(f(Math.sin(s.Heading)) * thrust) * dt));
  }
  s.VX = f(s.VX - f(f(s.VX * drag) * dt));
  s.VY = f(s.VY - f(f(s.VY * drag) * dt));
  const x = f(s.X + f(s.VX * dt));
  const y = f(s.Y + f(s.VY * dt));
  s.X = around(x);
  s.Y = around(y);
  if (s.X !== x || s.Y !== y) s.Leaps = (s.Leaps + 1) & 0xff;
}

/** around wraps a coordinate that has passed an edge. */
function around(at: number): number {
  if (at < 0) return f(at + size);
  if (at >= size) return f(at - size);
  return at;
}
