// A connection after its handshake: received data is checked and waits for the next step, and the
// client's data is sent with a flush.

import { Code } from "../api.js";
import type { Conn } from "../net/conn.js";
import type { Acknowledgement } from "../state/acks.js";
import {
  closeFrame, countFrame, DATAGRAM, digestFrame, encodeMessage, Field, frameOf, Kind, MAX_DATAGRAM, MAX_DATAGRAM_PAYLOAD, MAX_PAYLOAD,
  parseClose, moveFrame, parseCount, parseEpoch, parseFrame, parseInputStatus, parseMessage, parseMoved, parseOverload, parseTimes, parseTimeScale,
  type Epoch, type InputStatus, type Message, type Moved, type TimeScale,
} from "../wire/frames.js";
import { Walker, Writer } from "../wire/protobuf.js";
import { outOfRange, Refusal } from "../wire/refusal.js";
import type { Backlog } from "./backlog.js";
import type { Target } from "./travel.js";
import { Window } from "../wire/window.js";

/** The kinds of received data. */
export const enum Arrived {
  State,
  Record,
  Message,
  Accepted,
  Received,
  Closing,
  Time,
  Epoch,
  Overload,
  Scale,
  Inputs,
  Travel,
  Gone,
}

/** Received data, in the order of arrival. */
export type Arrival =
  | { kind: Arrived.State | Arrived.Record; at: number; bytes: Uint8Array }
  | { kind: Arrived.Message; message: Message; size: number; number: number }
  | { kind: Arrived.Accepted | Arrived.Received | Arrived.Closing; at: number; value: number }
  | { kind: Arrived.Time; times: [number, number, number, number] }
  | { kind: Arrived.Epoch; epoch: Epoch }
  | { kind: Arrived.Overload; level: number; sendEvery: number }
  | { kind: Arrived.Scale; scale: TimeScale }
  | { kind: Arrived.Inputs; status: InputStatus }
  | { kind: Arrived.Travel; moved: Moved }
  | { kind: Arrived.Gone; code: number; text: string };

/** The counters of all connections together. */
export interface Traffic {
  bytesIn: number;
  bytesOut: number;
  datagramsIn: number;
  datagramsOut: number;
  /** Datagrams and messages that were invalid or duplicates, or that found no room. */
  dropped: number;
}

/** The parts of an outgoing message. */
export interface Outgoing {
  method: number;
  stage: number;
  call: number;
  payload: Uint8Array;
  reliable: boolean;
}

/**
 * The connection over which a moving client continues, and the number of its first datagram in the
 * other room; 0 on a new connection, to another server.
 */
export interface Moving {
  conn: Conn | Promise<Conn>;
  first: number;
  to?: Target;
}

const MAX_ARRIVALS = 1024;
const MAX_ARRIVED_BYTES = 1 << 20;
const MAX_UNRELIABLE = 512;
const MAX_UNRELIABLE_BYTES = 32 << 10;
const CLOSE_WAIT = 500;
/**
 * After a silence of this many ms a client pads its datagrams, so that a restarted server may
 * answer.
 */
const PAD_AFTER = 50;
const PAD_TO = 32;
/** The most bytes of the tag and the length of a message in a datagram. */
const MAX_HEAD = 3;
/** The ms between two reports of mispredictions. A report is repeated, because it may be lost. */
const REPORT_EVERY = 1000;
const RECEIPT_MESSAGES = 16;
const RECEIPT_BYTES = 32 << 10;
const MS = 1e6;

export class Link {
  /** The time at which the last valid data arrived. */
  lastArrival: number;
  /** The connection is closing or closed. */
  ending = false;
  backlog: Backlog | undefined;
  /**
   * Set when the server has sent the client on to another room: the client joins it over this
   * connection.
   */
  moving: Moving | undefined;
  private inbox: Arrival[] = [];
  private inboxBytes = 0;
  private seen = new Window();
  private messages = 0;
  private number: number;
  private unreliable: Uint8Array[] = [];
  private unreliableBytes = 0;
  private requestDue = false;
  private reportFrom = 0;
  private receipted = 0;
  private unreceiptedBytes = 0;
  private decided: ((closed?: { code: number; text: string }) => void) | undefined;
  private out = new Writer(MAX_DATAGRAM + 16);
  /** The last fields of the next datagram: the newest inputs, and a report. */
  private tail = new Writer(MAX_DATAGRAM);

  constructor(
    private conn: Conn,
    private now: () => number,
    private later: (fn: () => void, ms: number) => void,
    private traffic: Traffic,
    /** The numbers of the first datagrams: of those to send, and of those to accept. */
    first = 1,
    private firstIn = 1,
  ) {
    this.number = first - 1;
    this.lastArrival = now();
  }

  /**
   * Calls fn once the game has decided on the client: without an argument if it is admitted, else
   * with the end.
   */
  onDecided(fn: (closed?: { code: number; text: string }) => void): void {
    this.decided = fn;
    for (const a of this.inbox) this.decide(a);
  }

  private decide(a: Arrival): void {
    if (a.kind !== Arrived.Accepted && a.kind !== Arrived.Gone) return;
    this.decided?.(a.kind === Arrived.Gone ? a : undefined);
    this.decided = undefined;
  }

  get transport() {
    return this.conn.transport;
  }

  /** Removes and returns the data that has arrived. */
  take(): Arrival[] {
    const all = this.inbox;
    this.inbox = [];
    this.inboxBytes = 0;
    return all;
  }

  private push(a: Arrival, size = 0): boolean {
    if (this.inbox.length >= MAX_ARRIVALS || this.inboxBytes + size > MAX_ARRIVED_BYTES) return false;
    this.inbox.push(a);
    this.inboxBytes += size;
    this.decide(a);
    return true;
  }

  /**
   * Queues data that may not be lost. If there is no room for it, because the page has not stepped
   * for long, the connection counts as broken: the next one sends the data again.
   */
  private pushOrBreak(a: Arrival, size = 0): void {
    if (!this.push(a, size)) this.break(Code.Timeout, "inbox is full: step is not called");
  }

  // Received data.

  datagram(b: Uint8Array): void {
    if (this.ending) return;
    this.traffic.datagramsIn++;
    this.tryTo(() => this.open(b, this.now()));
  }

  /** Runs take, and counts invalid data, which affects no other data. */
  private tryTo(take: () => void): void {
    try {
      take();
    } catch (e) {
      if (!(e instanceof Refusal)) throw e;
      this.traffic.dropped++;
    }
  }

  private open(b: Uint8Array, at: number): void {
    let number = 0;
    let reply: [number, number, number] | undefined;
    let state: Uint8Array | undefined;
    let status: InputStatus | undefined;
    const messages: Uint8Array[] = [];
    const w = new Walker(b, DATAGRAM);
    while (w.next()) {
      switch (w.num) {
        case Field.Number: number = w.value; break;
        case Field.TimeReply: reply = parseTimes(w.body); break;
        case Field.State: state = w.body; break;
        case Field.Messages: messages.push(w.body); break;
        case Field.InputStatus: status = parseInputStatus(w.body); break;
      }
    }
    if (b.length > MAX_DATAGRAM || number < this.firstIn || !this.seen.add(number)) outOfRange();
    this.lastArrival = at;
    if (reply && reply[0] <= at && reply[1] <= reply[2]) this.pushOrDrop({ kind: Arrived.Time, times: [...reply, at] });
    if (state) this.pushOrDrop({ kind: Arrived.State, at, bytes: state }, state.length);
    if (status) this.pushOrDrop({ kind: Arrived.Inputs, status });
    for (const m of messages) this.message(m, false);
  }

  /** Queues data that may be lost. */
  private pushOrDrop(a: Arrival, size = 0): void {
    if (!this.push(a, size)) this.traffic.dropped++;
  }

  private message(body: Uint8Array, reliable: boolean): void {
    const number = reliable ? ++this.messages : 0;
    this.tryTo(() => {
      const message = parseMessage(body, reliable);
      const a: Arrival = { kind: Arrived.Message, message, size: message.payload.length, number };
      if (reliable) this.pushOrBreak(a, body.length);
      else this.pushOrDrop(a, body.length);
    });
  }

  /** Takes a frame of the stream. */
  frame(frame: Uint8Array): void {
    if (this.ending) return;
    const at = this.now();
    try {
      const { kind, body } = parseFrame(frame);
      this.lastArrival = at;
      this.receiveFrame(kind, body, at);
    } catch (e) {
      if (!(e instanceof Refusal)) throw e;
      this.violated(`malformed frame: ${e.why}`);
    }
  }

  private receiveFrame(kind: Kind, body: Uint8Array, at: number): void {
    switch (kind) {
      case Kind.None:
        this.traffic.dropped++;
        return;
      case Kind.Message:
        return this.message(body, true);
      case Kind.State:
        return this.pushOrBreak({ kind: Arrived.Record, at, bytes: body }, body.length);
      case Kind.Epoch:
        return this.pushOrBreak({ kind: Arrived.Epoch, epoch: parseEpoch(body) });
      case Kind.Overload:
        return this.pushOrBreak({ kind: Arrived.Overload, ...parseOverload(body) });
      case Kind.TimeScale:
        return this.pushOrBreak({ kind: Arrived.Scale, scale: parseTimeScale(body) });
      case Kind.Accepted:
        return this.pushOrBreak({ kind: Arrived.Accepted, at, value: parseCount(body) });
      case Kind.MessagesReceived:
        return this.pushOrBreak({ kind: Arrived.Received, at, value: parseCount(body) });
      case Kind.Closing:
        return this.pushOrBreak({ kind: Arrived.Closing, at, value: parseCount(body) });
      case Kind.Close: {
        const c = parseClose(body);
        return this.endedBy(c.code, c.text, true);
      }
      case Kind.Moved: {
        const moved = parseMoved(body);
        if (moved.to) return this.pushOrBreak({ kind: Arrived.Travel, moved });
        this.moving = { conn: this.conn, first: this.number + 1 };
        this.backlog = undefined; // Later messages are not delivered.
        return this.endedBy(Code.Moved, moved.ticket, false);
      }
    }
    outOfRange();
  }

  /** Handles the end of the connection. */
  closed(code: number, text: string): void {
    this.moving = undefined;
    if (!this.ending) this.endedBy(code, text, false);
  }

  private endedBy(code: number, text: string, answer: boolean): void {
    this.ending = true;
    this.pushEnd(code, text);
    if (answer) this.conn.close(code, text);
  }

  /** Ends a connection after a violation of the protocol by the server. */
  violated(text: string): void {
    this.break(Code.Protocol, text);
  }

  private break(code: number, text: string): void {
    if (this.ending) return;
    this.close(code, text);
    this.pushEnd(code, text);
  }

  private pushEnd(code: number, text: string): void {
    const a: Arrival = { kind: Arrived.Gone, code, text };
    this.inbox.push(a);
    this.decide(a);
  }

  // Sent data.

  /** Sends a close frame, after all other data, and ends the connection. */
  close(code: number, text: string): void {
    if (this.ending) return;
    this.ending = true;
    this.raw(closeFrame(code, text));
    this.later(() => this.conn.close(code, text), CLOSE_WAIT);
  }

  /** Ends the connection without a close frame. */
  cut(): void {
    if (this.ending) return;
    this.endedBy(Code.Lost, "cut", false);
    this.conn.close(Code.Timeout, "");
  }

  private raw(frame: Uint8Array): void {
    this.traffic.bytesOut += frame.length;
    this.conn.stream(frame);
  }

  private control(frame: Uint8Array): void {
    if (!this.ending) this.raw(frame);
  }

  /**
   * Sends a message: a reliable one at once, another with the next flush. False: the message can
   * never be sent.
   */
  send(m: Outgoing): boolean {
    if (m.payload.length > (m.reliable ? MAX_PAYLOAD : MAX_DATAGRAM_PAYLOAD)) return false;
    const body = encodeMessage(m);
    if (!m.reliable) return this.queue(body);
    const frame = frameOf(Kind.Message, body);
    if (this.backlog && !this.backlog.add(frame)) {
      this.break(Code.Slow, "outbound queue is full");
      return false;
    }
    if (!this.backlog?.unconfirmed) this.control(frame);
    return this.backlog !== undefined || !this.ending;
  }

  private queue(body: Uint8Array): boolean {
    if (this.ending) return false;
    while (this.unreliable.length >= MAX_UNRELIABLE || this.unreliableBytes + body.length > MAX_UNRELIABLE_BYTES) {
      this.unreliableBytes -= this.unreliable.shift()!.length;
      this.traffic.dropped++;
    }
    this.unreliable.push(body);
    this.unreliableBytes += body.length;
    return true;
  }

  /**
   * Takes the number of messages that the server has received, and sends the missing ones. False:
   * the number is impossible.
   */
  resend(received: number): boolean {
    const b = this.backlog!;
    if (!b.confirm(received)) return false;
    if (b.unconfirmed) {
      b.unconfirmed = false;
      for (const frame of b.frames()) this.control(frame);
    }
    return true;
  }

  /** Sets the number of reliable messages that were acknowledged on earlier connections. */
  startReceipts(received: number): void {
    this.receipted = received;
  }

  /**
   * Records that reliable messages up to a number were handled. The server gets a receipt from time
   * to time.
   */
  received(messages: number, size: number): void {
    this.unreceiptedBytes += size;
    if (messages < this.receipted + RECEIPT_MESSAGES && this.unreceiptedBytes < RECEIPT_BYTES) return;
    this.receipted = messages;
    this.unreceiptedBytes = 0;
    this.control(countFrame(Kind.MessagesReceived, messages));
  }

  recordApplied(record: number): void {
    this.control(countFrame(Kind.StateApplied, record));
  }

  requestDigest(snapshots: number): void {
    this.control(digestFrame(snapshots, false));
  }

  requestFullState(): void {
    this.control(digestFrame(0, true));
  }

  /** Asks the room to move the client to the room of a ticket. */
  move(ticket: string): void {
    this.control(moveFrame(ticket));
  }

  requestTime(): void {
    this.requestDue = true;
  }

  setInputs(packet: Uint8Array): void {
    this.tail.reset().body(Field.Inputs, packet);
  }

  /**
   * Sends the datagrams that are due; with beat at least one, which repeats the acknowledgements.
   * wrong is the number of mispredictions since the join.
   */
  flush(beat: boolean, acks: Acknowledgement | undefined, wrong: number): void {
    while (!this.ending && (beat || this.requestDue || this.tail.length || this.unreliable.length > 0)) {
      this.sendDatagram(acks, wrong);
      beat = false;
    }
  }

  /** Sends the datagram of a due time request, between two flushes. */
  flushTime(acks: Acknowledgement | undefined): void {
    if (this.requestDue && !this.ending) this.sendDatagram(acks, 0);
  }

  private sendDatagram(acks: Acknowledgement | undefined, wrong: number): void {
    const w = this.out.reset();
    const now = this.now();
    w.number(Field.Number, ++this.number);
    if (acks) writeAcks(w, acks);
    if (this.requestDue) {
      this.requestDue = false;
      const t1 = Math.round(now * MS);
      w.sized(Field.TimeRequest, new Writer(16).number(1, t1).peek());
    }
    const { tail } = this;
    if (wrong && now >= this.reportFrom) {
      tail.number(Field.Mispredicted, wrong);
      this.reportFrom = now + REPORT_EVERY;
    }
    while (this.unreliable.length > 0) {
      const m = this.unreliable[0]!;
      if (w.length + tail.length + MAX_HEAD + m.length > MAX_DATAGRAM) break;
      w.sized(Field.Messages, m);
      this.unreliable.shift();
      this.unreliableBytes -= m.length;
    }
    const missing = PAD_TO - tail.length - w.length;
    if (now - this.lastArrival >= PAD_AFTER && missing > 0) w.sized(Field.Padding, new Uint8Array(missing));
    w.raw(tail.peek());
    tail.reset();
    const datagram = w.done();
    this.traffic.datagramsOut++;
    this.traffic.bytesOut += datagram.length;
    this.conn.datagram(datagram);
  }
}

/** Writes the acknowledgements of state packets. */
function writeAcks(w: Writer, a: Acknowledgement): void {
  const runs = new Writer(64);
  for (const k of a.runs) runs.uvarint(k);
  w.sized(Field.Acks, new Writer(64).number(1, a.newest).sized(2, runs.peek()).peek());
}
