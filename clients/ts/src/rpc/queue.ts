// Messages wait for their stage; messages that were sent with their state wait for that state as
// well.

import type { Message } from "../wire/frames.js";

/** A message of a known method. */
export interface Queued {
  message: Message;
  stage: number;
}

/** The maximum number of queued messages: further ones are rejected. */
const MAX_QUEUED = 4096;

/** The messages that wait for their stage, in the order of arrival. */
export class StageQueues {
  private queues = new Map<number, Queued[]>();
  private length = 0;

  /** Queues a message, or reports that there is no room. */
  push(q: Queued): boolean {
    if (this.length >= MAX_QUEUED) return false;
    const list = this.queues.get(q.stage);
    if (list) list.push(q);
    else this.queues.set(q.stage, [q]);
    this.length++;
    return true;
  }

  /** Removes and returns the messages of a stage. */
  take(stage: number): readonly Queued[] {
    const list = this.queues.get(stage);
    if (!list || list.length === 0) return NONE;
    this.queues.set(stage, []);
    this.length -= list.length;
    return list;
  }
}

const NONE: readonly Queued[] = [];
const MAX_HELD = 256;
const MAX_HELD_BYTES = 64 << 10;
const MAX_HELD_TICKS = 120;

/** The messages that wait for the state with which they were sent, oldest first. */
export class Held {
  early = 0;
  private state = 0;
  private queue: { q: Queued; arrivedTick: number }[] = [];
  private bytes = 0;

  get length(): number {
    return this.queue.length;
  }

  /**
   * Stores a message, or reports that its state has arrived. run gets the messages that are evicted
   * for it.
   */
  hold(q: Queued, tick: number, run: (q: Queued) => void): boolean {
    if (q.message.tick <= this.state) return false;
    const size = q.message.payload.length;
    while (this.queue.length > 0 && (this.queue.length >= MAX_HELD || this.bytes + size > MAX_HELD_BYTES)) {
      this.early++;
      run(this.pop());
    }
    this.queue.push({ q, arrivedTick: tick });
    this.bytes += size;
    return true;
  }

  /** Records that the state has reached a tick. */
  reached(tick: number, run: (q: Queued) => void): void {
    this.state = Math.max(this.state, tick);
    while (this.queue.length > 0 && this.queue[0]!.q.message.tick <= this.state) run(this.pop());
  }

  /** Runs the messages that have waited for too long. */
  expire(tick: number, run: (q: Queued) => void): void {
    while (this.queue.length > 0 && tick >= this.queue[0]!.arrivedTick + MAX_HELD_TICKS) {
      this.early++;
      run(this.pop());
    }
  }

  /** Runs all messages, because no more state arrives; restart: ticks begin again. */
  release(run: (q: Queued) => void, restart: boolean): void {
    while (this.queue.length > 0) {
      this.early++;
      run(this.pop());
    }
    if (restart) this.state = 0;
  }

  private pop(): Queued {
    const { q } = this.queue.shift()!;
    this.bytes -= q.message.payload.length;
    return q;
  }
}
