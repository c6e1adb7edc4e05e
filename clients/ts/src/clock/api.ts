import type { ServerClock } from "../api.js";
import { instantMs, leftUntil } from "../frame.js";
import type { ServerTime } from "./server.js";

/** The clocks that the page reads, at the time of the frame. */
export class PublicClock implements ServerClock {
  constructor(
    private time: ServerTime,
    private view: () => number,
    private now: () => number,
  ) {}

  get synced(): boolean {
    return this.time.sync.ready;
  }
  get serverTime(): number {
    return this.time.server(this.now());
  }
  get gameTime(): number {
    return this.time.game;
  }
  get scaledTime(): number {
    return this.time.scaled(this.time.game);
  }
  get tick(): number {
    return this.time.tick;
  }
  get tickRate(): number {
    return 1000 / this.time.line.tickMs;
  }
  get fixedRate(): number {
    return 1000 / this.time.line.stepMs;
  }
  get viewTime(): number {
    return this.view();
  }

  left(instant: bigint | number): number {
    return leftUntil(instant, this.gameTime, this.scaledTime);
  }

  at(instant: bigint | number): number {
    return instantMs(instant);
  }
}
