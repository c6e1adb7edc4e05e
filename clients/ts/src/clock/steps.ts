import type { Timeline } from "./timeline.js";

/**
 * Says which fixed steps a frame runs, by game time, so that they are evenly spaced at all rates. More
 * than line.mostSteps would make a slow page slower: the rest is left out, and counted.
 */
export class StepClock {
  /** The game time that the steps have come to. */
  at = 0;
  /** Steps that have run, or were left out. */
  done = 0;
  jumped = 0;
  first = 0;
  count = 0;
  fraction = 0;
  private started = false;

  /** Lets a clock that has not advanced yet begin behind a step. */
  start(done: number): void {
    if (this.started) return;
    this.started = true;
    this.done = Math.max(done, 0);
  }

  /** Moves on to a game time: the frame runs count steps from first on. */
  advance(line: Timeline, to: number): void {
    this.at = Math.max(this.at, to);
    const { step, fraction } = line.stepAt(this.at);
    this.start(step);
    const behind = Math.max(step - this.done, 0);
    const left = behind - Math.min(behind, line.mostSteps);
    this.jumped += left;
    this.first = this.done + left + 1;
    this.count = behind - left;
    this.fraction = fraction;
    this.done = Math.max(step, this.done);
  }

  /** Sets the steps back by a time: those after it run again. */
  setBack(line: Timeline, by: number): void {
    this.at = Math.max(this.at - by, 0);
    this.done = line.stepAt(this.at).step;
  }
}
