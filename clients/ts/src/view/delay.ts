// How far behind the server's time a client has to draw, so that it nearly always has the snapshot
// before and the one after the moment that it draws: see docs/adr/0036.

const MAX_DELAYS = 512;
const WINDOW = 10_000;
/** The share of the time that may be without a neighbour. */
const NEIGHBOURLESS = 1 / 200;
/** Makes up for what the estimate of the server's time trembles. */
export const SPARE = 2;
/** An outage is no jitter: what is further apart than so many periods is not looked at. */
const MAX_GAP = 5;

/** A snapshot that arrived whole. */
export interface Whole {
  tick: number;
  /** The game time of its tick. */
  game: number;
  /** Its arrival, by the client's clock. */
  at: number;
  /** Game time since the one before. */
  gap: number;
}

export class DelayMeter {
  private list: Whole[] = [];
  private next = 0;

  get count(): number {
    return this.list.length;
  }

  add(s: Whole): void {
    if (this.list.length < MAX_DELAYS) this.list.push({ ...s });
    else Object.assign(this.list[this.next], s);
    this.next = (this.next + 1) % MAX_DELAYS;
  }

  /** The server's time has moved for snapshots before a tick: as if they had arrived that much later. */
  shift(before: number, by: number): void {
    for (const s of this.list) if (s.tick < before) s.at += by;
  }

  /** How far behind to draw when the server's game time is game now; period is that of snapshots. */
  delay(now: number, game: number, period: number): number {
    let low = Infinity;
    let high = 0;
    for (const s of this.list) {
      if (!counts(s, now, period)) continue;
      const need = game - (now - s.at) - s.game + s.gap;
      low = Math.min(low, need);
      high = Math.max(high, need);
    }
    while (high - low > 0.05) {
      const mid = (low + high) / 2;
      if (this.enough(mid, now, game, period)) high = mid;
      else low = mid;
    }
    return high + SPARE;
  }

  /** Whether with a delay few enough of the frames would have been without a neighbour. */
  private enough(delay: number, now: number, game: number, period: number): boolean {
    let without = 0;
    let all = 0;
    for (const s of this.list) {
      if (!counts(s, now, period)) continue;
      const need = game - (now - s.at) - s.game + s.gap;
      all += s.gap;
      without += Math.min(Math.max(need - delay, 0), s.gap);
    }
    return without <= all * NEIGHBOURLESS;
  }
}

function counts(s: Whole, now: number, period: number): boolean {
  return now - s.at < WINDOW && s.gap <= MAX_GAP * period;
}
