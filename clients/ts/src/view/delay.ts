// The delay behind the server's time with which a client draws, so that it nearly always has the
// snapshots before and after the drawn moment: see docs/adr/0036.

const MAX_DELAYS = 512;
const WINDOW = 10_000;
/** The share of the time that may lack one of these snapshots. */
const MISSING_SHARE = 1 / 200;
/** Compensates for the jitter of the estimated server time. */
export const SPARE = 2;
/** An outage is no jitter: gaps longer than this many periods are ignored. */
const MAX_GAP = 5;

/** A complete snapshot. */
export interface SnapshotArrival {
  tick: number;
  /** The game time of its tick. */
  game: number;
  /** Its arrival, by the client's clock. */
  at: number;
  /** The game time since the snapshot before. */
  gap: number;
}

export class DelayMeter {
  private list: SnapshotArrival[] = [];
  private next = 0;

  get count(): number {
    return this.list.length;
  }

  add(s: SnapshotArrival): void {
    if (this.list.length < MAX_DELAYS) this.list.push({ ...s });
    else Object.assign(this.list[this.next], s);
    this.next = (this.next + 1) % MAX_DELAYS;
  }

  /**
   * Follows a move of the server's time: snapshots before a tick count as if they had arrived that
   * much later.
   */
  shift(before: number, by: number): void {
    for (const s of this.list) if (s.tick < before) s.at += by;
  }

  /**
   * The delay to draw with at the server's game time game and the client's time now; period is that
   * of snapshots.
   */
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

  /** Reports whether few enough of the frames would have lacked a snapshot with a delay. */
  private enough(delay: number, now: number, game: number, period: number): boolean {
    let without = 0;
    let all = 0;
    for (const s of this.list) {
      if (!counts(s, now, period)) continue;
      const need = game - (now - s.at) - s.game + s.gap;
      all += s.gap;
      without += Math.min(Math.max(need - delay, 0), s.gap);
    }
    return without <= all * MISSING_SHARE;
  }
}

function counts(s: SnapshotArrival, now: number, period: number): boolean {
  return now - s.at < WINDOW && s.gap <= MAX_GAP * period;
}
