// The server's clock, estimated from four timestamps of each exchange: the least delay of each way
// over a window, because queues only ever add to it, and the drift of the two clocks by a line
// through the last minute. All times are ms.

const WINDOW = 48;
const READY = 8;
/** From this error on the estimate jumps; below it slews by 1 %. */
export const SYNC_JUMP = 100;
const SLEW = 1 / 100;
/** A round trip over the window may appear negative by this many ms, until the drift is known. */
const IMPOSSIBLE = 10;
const MAX_RTT = 10_000;

interface Exchange {
  at: number;
  there: number;
  back: number;
}

export class Sync {
  /** How often the estimate jumped. */
  jumps = 0;
  private window: Exchange[] = [];
  private count = 0;
  private at = -Infinity;
  private offset = 0;
  private roundTrip = 0;
  private drift = new Drift();
  private started = false;
  private local = 0;
  private reading = 0;

  /**
   * Takes the times at which the client sent, the server received and sent, and the client
   * received.
   */
  sample(t1: number, t2: number, t3: number, t4: number): void {
    const rtt = t4 - t1 - (t3 - t2);
    if (t4 < t1 || t3 < t2 || rtt < 0 || rtt > MAX_RTT) return;
    const e = { at: (t1 + t4) / 2, there: t2 - t1, back: t4 - t3 };
    this.window.push(e);
    if (this.window.length > WINDOW) this.window.shift();
    this.count++;
    this.at = Math.max(this.at, e.at);
    this.drift.add(e);
    this.estimate();
    if (this.roundTrip < -IMPOSSIBLE) {
      // One of the clocks was set or stopped: all earlier exchanges are invalid.
      this.window = [e];
      this.drift = new Drift();
      this.estimate();
    }
  }

  private estimate(): void {
    let there = Infinity;
    let back = Infinity;
    for (const e of this.window) {
      const gained = this.drift.rate * (this.at - e.at);
      there = Math.min(there, e.there + gained);
      back = Math.min(back, e.back - gained);
    }
    this.offset = (there - back) / 2;
    this.roundTrip = there + back;
  }

  get ready(): boolean {
    return this.count >= READY;
  }

  get rtt(): number {
    return Math.max(this.roundTrip, 0);
  }

  /** The server's time at a time of the client. It never decreases. */
  server(local: number): number {
    const target = local + this.offset + (this.count > 0 ? this.drift.rate * (local - this.at) : 0);
    if (!this.ready) return target;
    if (!this.started) {
      this.started = true;
      this.local = local;
      return (this.reading = target);
    }
    const passed = local - this.local;
    if (passed <= 0) return this.reading;
    this.local = local;
    this.reading += passed;
    const off = target - this.reading;
    if (Math.abs(off) >= SYNC_JUMP) {
      this.jumps++;
      return (this.reading = target);
    }
    const most = passed * SLEW;
    return (this.reading += Math.min(Math.max(off, -most), most));
  }
}

const BLOCK = 8;
const POINTS = 24;
const USUAL = 100e-6;
const MAX_DRIFT = 500e-6;
const LEAST_SHARE = 1 / 5;
const LEAST_NOISE = 0.02;

/**
 * The relative speed of the server's clock: a line through the offsets of blocks of exchanges.
 * While the points are too close together to tell drift from jitter, the estimate is drawn to zero
 * (ridge regression).
 */
class Drift {
  rate = 0;
  private block: Exchange[] = [];
  private points: { at: number; offset: number; noise: number }[] = [];

  add(e: Exchange): void {
    this.block.push(e);
    if (this.block.length < BLOCK) return;
    let at = 0;
    let sum = 0;
    let there = Infinity;
    let back = Infinity;
    for (const x of this.block) {
      at += x.at / BLOCK;
      sum += (x.there + x.back) / BLOCK;
      there = Math.min(there, x.there);
      back = Math.min(back, x.back);
    }
    this.block = [];
    this.points.push({ at, offset: (there - back) / 2, noise: LEAST_NOISE + ((sum - there - back) / 2) * LEAST_SHARE });
    if (this.points.length > POINTS) this.points.shift();
    this.fit();
  }

  private fit(): void {
    const n = this.points.length;
    const first = this.points[0]!;
    let at = 0;
    let noise = 0;
    for (const p of this.points) {
      at += (p.at - first.at) / n;
      noise += p.noise / n;
    }
    let squares = (noise / USUAL) ** 2;
    let products = 0;
    for (const p of this.points) {
      const x = p.at - first.at - at;
      squares += x * x;
      products += x * (p.offset - first.offset);
    }
    this.rate = Math.min(Math.max(products / squares, -MAX_DRIFT), MAX_DRIFT);
  }
}
