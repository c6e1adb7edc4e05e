import type { Timeline } from "./timeline.js";

/**
 * Computes which fixed steps a frame runs, by game time, so that they are evenly spaced at all
 * rates. A frame runs at most line.maxSteps, because more would make a slow page slower: the rest
 * is skipped, and counted.
 */
export class StepClock {
  /** The game time that the steps have reached. */
  at = 0;
  /** Steps that have run, or were skipped. */
  done = 0;
  skipped = 0;
  first = 0;
  count = 0;
  fraction = 0;
  private started = false;

  /** Sets the last step that counts as done, of a clock that has not advanced yet. */
  start(done: number): void {
    if (this.started) return;
    this.started = true;
    this.done = Math.max(done, 0);
  }

  /** Advances to a game time: the frame runs count steps from first on. */
  advance(line: Timeline, to: number): void {
    this.at = Math.max(this.at, to);
    const { step, fraction } = line.stepAt(this.at);
    this.start(step);
    const behind = Math.max(step - this.done, 0);
    const left = behind - Math.min(behind, line.maxSteps);
    this.skipped += left;
    this.first = this.done + left + 1;
    this.count = behind - left;
    this.fraction = fraction;
    this.done = Math.max(step, this.done);
  }

  /** Sets the steps back by a time: the later ones run again. */
  setBack(line: Timeline, by: number): void {
    this.at = Math.max(this.at - by, 0);
    this.done = line.stepAt(this.at).step;
  }
}
