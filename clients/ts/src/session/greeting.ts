// The client's half of a handshake, without I/O: it takes the server's frames, and returns the
// answer to send, the welcome, or the reason of a refusal. The client has no fingerprint, so the
// server always sends its tables first: they decide the race of two connections, before either of the
// two is admitted.

import { Code, NetloopError } from "../api.js";
import { outOfRange, refuse } from "../wire/refusal.js";
import { Kind, MAX_PARTS, MAX_TABLES, frameOf, parseClose, parseFrame, parsePart, parseRefusedMove, parseWelcome, type Moved, type Welcome } from "../wire/frames.js";

/** The result of a frame, if it is more than a part. */
export interface Step {
  tables?: Uint8Array;
  welcome?: Welcome;
}

/** The refusal of a server that sends the client to the room of another server. */
export class Elsewhere extends NetloopError {
  constructor(
    text: string,
    readonly moved: Moved,
  ) {
    super(Code.Moved, text);
  }
}

export const schemaAccepted = frameOf(Kind.SchemaAccepted, new Uint8Array(0));

export class Greeting {
  private parts = 0;
  private size = 0;
  private got = 0;
  private tables: Uint8Array = new Uint8Array(0);

  /** accepted: the tables of this connection are known already, because the client moves. */
  constructor(private accepted: boolean) {}

  /**
   * Takes a frame; throws a NetloopError for the server's refusal, and a Refusal for an invalid
   * frame.
   */
  take(frame: Uint8Array): Step {
    const { kind, body } = parseFrame(frame);
    switch (kind) {
      case Kind.SchemaPart:
        return this.part(body);
      case Kind.Close: // Sent by a room that refuses a moving client.
      case Kind.Refused: {
        const c = parseClose(body);
        const moved = c.code === Code.Moved && parseRefusedMove(body);
        throw moved ? new Elsewhere(c.text, moved) : new NetloopError(c.code, c.text);
      }
      case Kind.Welcome:
        if (!this.accepted) refuse("welcome before the schema");
        return { welcome: parseWelcome(body) };
    }
    return outOfRange();
  }

  private part(body: Uint8Array): Step {
    const p = parsePart(body);
    if (++this.parts === 1 && p.size <= MAX_TABLES) {
      this.size = p.size;
      this.tables = new Uint8Array(p.size);
    }
    if (this.accepted || p.size > MAX_TABLES || this.parts > MAX_PARTS || p.size !== this.size || this.got + p.data.length > this.size) {
      refuse("schema parts are too large or inconsistent");
    }
    this.tables.set(p.data, this.got);
    this.got += p.data.length;
    if (this.got < this.size) return {};
    this.accepted = true;
    return { tables: this.tables };
  }
}
