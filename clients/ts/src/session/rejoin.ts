// The reconnection of a client after a broken connection: the times of its attempts, and the
// answers that end them.

import { Code, type NetloopError } from "../api.js";
import type { Joined } from "./race.js";

const MIN_BACK_OFF = 100;
const MAX_BACK_OFF = 5000;
// The same after an attempt without an answer, which costs a server little.
const UNANSWERED_BACK_OFF = 600;
// The first attempts are short: a restarting server answers no attempt that began before.
const MIN_DIAL = 1000;
const MAX_DIAL = 5000;
// A move waits for longer than the 10 s in which a server lets a game admit a client.
const MOVE_LIMIT = 15000;

const TEMPORARY: readonly number[] = [Code.Unspecified, Code.Full, Code.Busy, Code.Closing, Code.Timeout, Code.Flood, Code.Lost, Code.Internal];

/** Reports whether a later attempt may succeed after a refusal with this code. */
function temporary(code: number): boolean {
  return TEMPORARY.includes(code);
}

/** Reports whether the code is that of an attempt without an answer. */
function unanswered(code: number): boolean {
  return code === Code.Lost || code === Code.Timeout;
}

/** Reports whether the client reconnects after this code; rejoining: an attempt has ended with it. */
export function reconnects(code: number, rejoining: boolean): boolean {
  return unanswered(code) || (rejoining && temporary(code));
}

/** The attempts of a client without a connection, until the game has admitted it again. */
export class Rejoin {
  tries = 0;
  /** Connected; the server has not sent yet that the client is admitted. */
  joining = false;
  /** A new seat was joined, which the next attempt may resume: the seat of before is lost. */
  anew = false;
  dialed: Joined | undefined;
  /** The attempt is a move to another room, over the existing connection. */
  moves = false;
  private dialing: AbortController | undefined;
  private next: number;

  constructor(
    public since: number,
    /** The reason why the connection broke, or the last attempt failed. */
    public why: { code: number; text: string },
    private now: () => number,
    private random: () => number,
    /** Called when the connection of a move breaks. */
    private broken: () => void,
  ) {
    this.next = since;
  }

  /** Reports whether the next attempt is due now. */
  due(now: number): boolean {
    return !this.dialing && !this.dialed && !this.joining && now >= this.next;
  }

  /** Begins an attempt, and calls failed if further attempts are useless. */
  dial(now: number, giveUp: number, enter: (limit: number, signal: AbortSignal) => Promise<Joined>, failed: (e: NetloopError) => void): void {
    this.tries++;
    const limit = Math.min(this.moves ? MOVE_LIMIT : doubled(MIN_DIAL, this.tries, MAX_DIAL), Math.max(this.since + giveUp - now, 1));
    const dialling = new AbortController();
    this.dialing = dialling;
    enter(limit, dialling.signal).then(
      (entered) => {
        if (this.dialing !== dialling) return entered.link.close(Code.Left, "");
        this.dialing = undefined;
        this.dialed = entered;
      },
      (error: NetloopError) => {
        if (this.dialing !== dialling) return;
        this.dialing = undefined;
        if (!temporary(error.code) || (this.moves && !unanswered(error.code))) return failed(error); // The previous room has released it.
        this.failed(this.now(), { code: error.code, text: error.message });
      },
    );
  }

  /** Schedules the next attempt, after a failed one. */
  failed(now: number, why: { code: number; text: string }): void {
    if (this.why.code === Code.Moved) {
      this.since = now;
      this.broken();
    }
    this.why = why;
    this.joining = this.moves = false;
    this.dialed = undefined;
    const wait = doubled(MIN_BACK_OFF, this.tries, unanswered(why.code) ? UNANSWERED_BACK_OFF : MAX_BACK_OFF);
    // The delay deviates by half, so that the clients of a restarted server do not all reconnect at once.
    this.next = now + wait / 2 + wait * this.random();
  }

  /** Ends the attempts. */
  stop(): void {
    this.dialing?.abort();
    this.dialing = undefined;
    this.dialed?.link.close(Code.Left, "");
    this.dialed = undefined;
  }
}

function doubled(first: number, tries: number, most: number): number {
  return Math.min(first * 2 ** Math.min(tries - 1, 20), most);
}
