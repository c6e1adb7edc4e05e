// The flight of a ship, as in ship.go: the server runs that code, and this page runs this, a little
// earlier. Numbers are rounded to float32 wherever Go has a float32, so that the results are equal.

import { size } from "./camera.js";

const f = Math.fround;

const thrust = 220; // acceleration, units per second
const drag = f(0.6); // share of the speed lost per second
const turnRate = 3;

/** reloadMs is the least time between two shots. */
export const reloadMs = 250;
/** glowMs is how long a shot is visible. */
export const glowMs = 200;

/** Flight is the part of a ship that moves. */
export interface Flight {
  X: number;
  Y: number;
  VX: number;
  VY: number;
  Heading: number;
  Leaps: number;
  Thrust: boolean;
  Turn: number;
}

/** fly flies a ship by its controls for dt seconds, a float32. */
export function fly(s: Flight, dt: number): void {
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
