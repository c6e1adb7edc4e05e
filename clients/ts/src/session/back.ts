// The reconnection of a client after a broken connection: the times of its attempts, and the
// answers that end them.

import { Code, type NetloopError } from "../api.js";
import type { Entered } from "./entry.js";

const FIRST_WAIT = 100;
const MOST_WAIT = 5000;
// The same after an attempt without an answer, which costs a server little: one of them finds it again.
const QUIET_WAIT = 600;
// The first attempts are short: a server that restarts answers none that began before.
const FIRST_LIMIT = 1000;
const MOST_LIMIT = 5000;
// A move waits for longer than the 10 s in which a server lets a game admit a client.
const MOVE_LIMIT = 15000;

const PASSING: readonly number[] = [Code.Unspecified, Code.Full, Code.Busy, Code.Closing, Code.Timeout, Code.Flood, Code.Lost, Code.Internal];

/** Reports whether a later attempt may succeed after a refusal with this code. */
function passes(code: number): boolean {
  return PASSING.includes(code);
}

/** Whether no answer has come. */
function silent(code: number): boolean {
  return code === Code.Lost || code === Code.Timeout;
}

/** Whether a connection that has ended so may be followed by another; away: it is an attempt. */
export function mayFollow(code: number, away: boolean): boolean {
  return silent(code) || (away && passes(code));
}

/** A client without a connection, until the game has readmitted it. */
export class Away {
  attempt = 0;
  /** It waits for the server's confirmation that the client is in the room. */
  waits = false;
  /** The server has resumed the client's seat. */
  resumed = false;
  landed: Entered | undefined;
  /** The attempt is a move to another room, over the existing connection. */
  moves = false;
  private dialling: AbortController | undefined;
  private next: number;

  constructor(
    readonly since: number,
    /** The reason why the connection broke, or the last attempt failed. */
    public why: { code: number; text: string },
    private now: () => number,
    private random: () => number,
  ) {
    this.next = since;
  }

  /** Reports whether the next attempt is due now. */
  due(now: number): boolean {
    return !this.dialling && !this.landed && !this.waits && now >= this.next;
  }

  /** Begins an attempt, and calls failed if further attempts are useless. */
  dial(now: number, giveUp: number, enter: (limit: number, signal: AbortSignal) => Promise<Entered>, failed: (e: NetloopError) => void): void {
    this.attempt++;
    const limit = Math.min(this.moves ? MOVE_LIMIT : doubled(FIRST_LIMIT, this.attempt, MOST_LIMIT), Math.max(this.since + giveUp - now, 1));
    const dialling = new AbortController();
    this.dialling = dialling;
    enter(limit, dialling.signal).then(
      (entered) => {
        if (this.dialling !== dialling) return entered.link.close(Code.Left, "");
        this.dialling = undefined;
        this.landed = entered;
      },
      (error: NetloopError) => {
        if (this.dialling !== dialling) return;
        this.dialling = undefined;
        if (!passes(error.code) || (this.moves && !silent(error.code))) return failed(error); // The room before has let it go.
        this.failed(this.now(), { code: error.code, text: error.message });
      },
    );
  }

  /** Schedules the next attempt, after a failed one. */
  failed(now: number, why: { code: number; text: string }): void {
    this.why = why;
    this.waits = this.moves = false;
    this.landed = undefined;
    const wait = doubled(FIRST_WAIT, this.attempt, silent(why.code) ? QUIET_WAIT : MOST_WAIT);
    // Give or take half, so that the clients of a server that was away do not all come at once.
    this.next = now + wait / 2 + wait * this.random();
  }

  /** Ends the attempts. */
  stop(): void {
    this.dialling?.abort();
    this.dialling = undefined;
    this.landed?.link.close(Code.Left, "");
    this.landed = undefined;
  }
}

function doubled(first: number, attempt: number, most: number): number {
  return Math.min(first * 2 ** Math.min(attempt - 1, 20), most);
}
