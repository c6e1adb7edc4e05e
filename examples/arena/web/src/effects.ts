import type { Painter } from "./paint.js";

/** The most bursts at once, and the length of each, in seconds. */
const most = 32;
const burstTime = 0.7;

/** Effects holds the short animations that follow an event. */
export class Effects {
  private readonly all = Array.from({ length: most }, () => ({ x: 0, y: 0, begun: -Infinity, own: false }));
  private next = 0;

  /** burst starts the burst of a ship at a position. now is in seconds. */
  burst(x: number, y: number, own: boolean, now: number): void {
    Object.assign(this.all[this.next]!, { x, y, own, begun: now });
    this.next = (this.next + 1) % most;
  }

  draw(p: Painter, now: number): void {
    for (const b of this.all) {
      const part = (now - b.begun) / burstTime;
      if (part >= 0 && part < 1) p.burst(b.x, b.y, part, b.own);
    }
  }
}
