// Counts skipped snapshots and lost packets, and decides which flushes send a datagram for
// acknowledgements alone.

/** The fields of a packet that Losses uses. */
export interface Received {
  id: number;
  tick: number;
  index: number;
  count: number;
}

/**
 * Distinguishes skipped snapshots from lost packets. Packets are numbered without gaps, so a missing number
 * was sent and lost, and a due snapshot without a number was never sent.
 */
export class Losses {
  every = 1;
  tick = 0;
  /** Packets of the newest snapshot that are in flight. */
  inFlight = 0;
  held = 0;
  /** The number of losses and skipped snapshots. */
  count = 0;
  private next = 0;
  private received = 0;
  private earlier = 0;
  private gap = 0;

  /** Restarts for another connection, which numbers its packets from 1. */
  restart(sendEvery: number): void {
    this.earlier = this.lost;
    this.tick = this.inFlight = this.next = this.received = this.gap = 0;
    this.period(sendEvery);
  }

  period(sendEvery: number): void {
    this.every = Math.min(Math.max(sendEvery, 1), 2 ** 20);
  }

  /** Counts a refused packet. */
  refused(): void {
    this.received++;
  }

  packet(p: Received): void {
    this.received++;
    if (p.tick === this.tick) this.inFlight -= Math.min(this.inFlight, 1);
    if (p.tick <= this.tick) return;
    const first = p.id - Math.min(p.index, p.id);
    if (this.tick === 0 || this.inFlight > 0 || first > this.next) {
      this.gap = p.tick;
      this.count++;
    }
    if (this.tick > 0) {
      const due = Math.floor(p.tick / this.every) - Math.floor(this.tick / this.every);
      const missed = due - Math.min(due, Math.max(first - this.next, 0) + 1);
      if (missed > 0) {
        this.held += missed;
        this.count++;
      }
    }
    this.tick = p.tick;
    this.next = first + p.count;
    this.inFlight = p.count - 1;
  }

  /** Packets that were sent and have not arrived, except those of the newest snapshot. */
  get lost(): number {
    return this.earlier + Math.max(this.next - this.received - this.inFlight - 1, 0);
  }

  /** Reports whether the server knew of all losses when it had the acknowledgements of a tick. */
  gapless(acknowledged: number): boolean {
    return acknowledged >= this.gap && this.tick > 0;
  }
}

const ACK_SNAPSHOTS = 3;
const ACK_SPAN = 51;
const GOOD_AFTER = 2000;
const ACK_INTERVAL = 100;
const ACK_LATE = 50;

/**
 * Decides which flushes send a datagram for acknowledgements alone: on a good link those of every
 * third snapshot, by the server's ticks, so that clients with equal packets send equal
 * acknowledgements.
 */
export class Acking {
  private goodFrom = 0;
  private losses = -1;
  private tick = 0;
  private arrived = 0;
  private turn = 0;
  private sent = -Infinity;

  due(now: number, r: Losses, period: number): boolean {
    if (r.count !== this.losses) {
      this.losses = r.count;
      this.goodFrom = now + GOOD_AFTER;
    }
    if (r.tick !== this.tick) {
      this.tick = r.tick;
      this.arrived = now;
    }
    const each = r.every * period;
    const at = Math.min(Math.max(Math.floor(ACK_SPAN / Math.max(each, 1)), 1), ACK_SNAPSHOTS);
    const turn = Math.floor(Math.floor(r.tick / r.every) / at);
    const late = now - this.arrived > 2 * each + ACK_LATE;
    if (now >= this.goodFrom && !late && now - this.sent < ACK_INTERVAL && (turn === this.turn || r.inFlight > 0)) return false;
    this.turn = turn;
    this.sent = now;
    return true;
  }
}
