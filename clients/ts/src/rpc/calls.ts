// The calls that wait for an answer.

import { Code, NetloopError } from "../api.js";
import type { Message } from "../wire/frames.js";

/** The maximum number of pending calls: more than a player can make. */
const MAX_CALLS = 1024;

interface Waiting {
  method: number;
  deadline: number;
  resolve(answer: unknown): void;
  reject(error: NetloopError): void;
}

export class Calls {
  late = 0;
  private last = 0;
  private waiting = new Map<number, Waiting>();

  get size(): number {
    return this.waiting.size;
  }

  get full(): boolean {
    return this.waiting.size >= MAX_CALLS;
  }

  /** Stores a call and returns its id. */
  add(w: Waiting): number {
    this.waiting.set(++this.last, w);
    return this.last;
  }

  /**
   * Passes an answer to its call. An answer without a waiting call, or of another method, is
   * counted.
   */
  answer(m: Message, decode: (payload: Uint8Array) => unknown): void {
    const w = this.waiting.get(m.call);
    if (!w || w.method !== m.method) {
      this.late++;
      return;
    }
    if (m.code !== 0) {
      this.waiting.delete(m.call);
      return w.reject(new NetloopError(m.code, m.text));
    }
    const answer = decode(m.payload);
    if (answer === undefined) return; // Handled as a lost answer: the call runs into its timeout.
    this.waiting.delete(m.call);
    w.resolve(answer);
  }

  fail(id: number, error: NetloopError): void {
    const w = this.waiting.get(id);
    this.waiting.delete(id);
    w?.reject(error);
  }

  expire(now: number): void {
    for (const [id, w] of this.waiting) {
      if (now >= w.deadline) this.fail(id, new NetloopError(Code.Timeout, "call timed out"));
    }
  }

  failAll(code: number, text: string): void {
    const all = [...this.waiting.values()];
    this.waiting.clear();
    for (const w of all) w.reject(new NetloopError(code, text));
  }
}
