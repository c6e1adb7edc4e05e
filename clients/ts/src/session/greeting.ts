// The client's half of a handshake, without I/O: the server's frames go in, and what comes out is
// what to answer, the welcome, or why there is none. The client has no fingerprint, so the server
// always tells its tables first: the race of two carriers is decided by them, before either of the
// two is admitted.

import { Code, NetloopError } from "../api.js";
import { Kind, MAX_PARTS, MAX_TABLES, frameOf, parseClose, parseFrame, parsePart, parseWelcome, type Welcome } from "../wire/frames.js";

/** What became of a frame. */
export type Step =
  | { kind: "more" }
  | { kind: "tables"; tables: Uint8Array }
  | { kind: "welcome"; welcome: Welcome }
  | { kind: "refused"; error: NetloopError }
  | { kind: "broken"; error: NetloopError };

export const schemaAccepted = frameOf(Kind.SchemaAccepted, new Uint8Array(0));

export class Greeting {
  private parts = 0;
  private size = 0;
  private got = 0;
  private tables: Uint8Array = new Uint8Array(0);
  private accepted = false;

  take(frame: Uint8Array): Step {
    const f = parseFrame(frame);
    switch (f?.kind) {
      case Kind.SchemaPart:
        return this.part(f.body);
      case Kind.Refused: {
        const c = parseClose(f.body);
        if (!c) break;
        return { kind: "refused", error: new NetloopError(c.code, c.text) };
      }
      case Kind.Welcome: {
        if (this.parts > 0 && !this.accepted) return broken("the server's tables are cut short");
        const welcome = parseWelcome(f.body);
        if (!welcome) break;
        if (!this.accepted) return broken("the server has not told its tables");
        return { kind: "welcome", welcome };
      }
    }
    return broken("the server's answer is malformed");
  }

  private part(body: Uint8Array): Step {
    const p = parsePart(body);
    if (!p) return broken("the server's answer is malformed");
    if (++this.parts === 1 && p.size <= MAX_TABLES) {
      this.size = p.size;
      this.tables = new Uint8Array(p.size);
    }
    if (this.accepted || p.size > MAX_TABLES || this.parts > MAX_PARTS || p.size !== this.size || this.got + p.data.length > this.size) {
      return broken("the server's tables are too large, or do not fit together");
    }
    this.tables.set(p.data, this.got);
    this.got += p.data.length;
    if (this.got < this.size) return { kind: "more" };
    this.accepted = true;
    return { kind: "tables", tables: this.tables };
  }
}

function broken(text: string): Step {
  return { kind: "broken", error: new NetloopError(Code.Protocol, text) };
}
