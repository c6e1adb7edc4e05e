// Frames: how they are cut from the stream, and their contents.

import { outOfRange } from "./refusal.js";
import { clip, MAX_TEXT, ONCE, SIZED, textOf, VARINT, Walker, Writer } from "./protobuf.js";
export const PROTOCOL = 1;
export const MAX_FRAME = 16 << 10;
export const MAX_HANDSHAKE = 32 << 10;
export const MAX_PAYLOAD = MAX_FRAME - 64 - 512;
export const MAX_DATAGRAM = 1150;
export const MAX_DATAGRAM_PAYLOAD = MAX_DATAGRAM - 64;
export const MAX_TABLES = 16 * (MAX_FRAME - 16);
export const MAX_PARTS = 16;

/** The fields of a frame. */
export const enum Kind {
  None,
  Hello,
  Welcome,
  Refused,
  Message,
  Epoch,
  DigestRequest,
  Close,
  Overload,
  SchemaPart,
  SchemaAccepted,
  State,
  StateApplied,
  TimeScale,
  Accepted,
  MessagesReceived,
  Closing,
  Move,
  Moved,
}

const FRAME: readonly number[] = [0, ...Array(18).fill(SIZED)];

// All readers here throw a Refusal for bytes that break the rules.

/** The only known field of a frame, or Kind.None if there is none. */
export function parseFrame(frame: Uint8Array): { kind: Kind; body: Uint8Array } {
  let kind = Kind.None;
  let body = frame;
  const w = new Walker(frame, FRAME);
  while (w.next()) {
    if (kind !== Kind.None) outOfRange();
    kind = w.num;
    body = w.body;
  }
  return { kind, body };
}

/** Cuts a stream into frames. A frame that arrives in one piece is not copied. */
export class Cutter {
  private rest: Uint8Array = new Uint8Array(0);

  /** Takes bytes of the stream and passes on their frames; false: a frame exceeds its limit. */
  take(bytes: Uint8Array, limit: () => number, frame: (f: Uint8Array) => boolean): boolean {
    let b = bytes;
    if (this.rest.length > 0) {
      b = new Uint8Array(this.rest.length + bytes.length);
      b.set(this.rest);
      b.set(bytes, this.rest.length);
    }
    let at = 0;
    for (;;) {
      let size = 0;
      let n = 0;
      for (; ; n++) {
        if (at + n >= b.length) return this.keep(b, at);
        const c = b[at + n]!;
        size += (c & 0x7f) * 128 ** n;
        if (c < 0x80) break;
        if (n === 2) return false;
      }
      if (size > limit()) return false;
      const from = at + n + 1;
      if (from + size > b.length) return this.keep(b, at);
      at = from + size;
      if (!frame(b.subarray(from, at))) return this.keep(b, at);
    }
  }

  private keep(b: Uint8Array, at: number): boolean {
    this.rest = b.slice(at);
    return true;
  }
}

const scratch = new Writer(1024);

/** A frame of one field, with its length before it. */
export function frameOf(kind: Kind, body: Uint8Array): Uint8Array {
  const inner = new Writer(body.length + 16).sized(kind, body).peek();
  const w = new Writer(inner.length + 4);
  w.uvarint(inner.length);
  w.raw(inner);
  return w.peek();
}

/** A frame with a number as its only content. */
export function countFrame(kind: Kind, n: number): Uint8Array {
  return frameOf(kind, scratch.reset().number(1, n).peek());
}

/** A client's first message. */
export interface Hello {
  schema: string;
  major: number;
  minor: number;
  room: string;
  params: Uint8Array;
  token: string;
  build: string;
  resume?: Resume;
  ticket: string;
  spectate: boolean;
  /** Of a moving client: the number of its first datagram in the other room; else 0. */
  datagram: number;
}

/** The state from which a client resumes. */
export interface Resume {
  token: Uint8Array;
  received: number;
  kept: boolean;
  attempt: number;
}

export function helloFrame(h: Hello): Uint8Array {
  const w = new Writer()
    .number(1, PROTOCOL)
    .text(2, h.schema)
    .number(3, h.major)
    .number(4, h.minor)
    .text(7, h.room)
    .body(8, h.params)
    .text(9, h.token)
    .text(10, h.build);
  if (h.resume) {
    const r = h.resume;
    w.sized(11, new Writer().body(1, r.token).number(2, r.received).number(3, r.kept).number(4, r.attempt).peek());
  }
  w.text(13, h.ticket).number(14, h.spectate).number(15, true).number(16, h.datagram).number(17, true);
  return frameOf(Kind.Hello, w.peek());
}

export function closeFrame(code: number, text: string): Uint8Array {
  return frameOf(Kind.Close, new Writer().number(1, code).text(2, clip(text)).peek());
}

export function moveFrame(ticket: string): Uint8Array {
  return frameOf(Kind.Move, new Writer().text(1, ticket).peek());
}

/** The room to which a client moves: its ticket, and the addresses of its server if that is another one. */
export interface Moved {
  ticket: string;
  to?: Address[];
}

/** The address of a server for one carrier, with the SHA-256 hashes of unsigned certificates. */
export interface Address {
  carrier: string;
  addr: string;
  hashes: Uint8Array[];
}

const MAX_ADDRESSES = 8;
const MAX_HASHES = 4;
const MAX_ADDRESS = 256; // bytes of each text

export function parseMoved(body: Uint8Array): Moved {
  const { bytes } = read(body);
  return { ticket: lastText(bytes[1]), to: bytes[2]?.map(parseDestination)[0] };
}

/** The move of `refused`, or undefined. */
export function parseRefusedMove(body: Uint8Array): Moved | undefined {
  return read(body).bytes[3]?.map(parseMoved)[0];
}

function parseDestination(body: Uint8Array): Address[] {
  const all = read(body).bytes[1] ?? [];
  return all.length < 1 || all.length > MAX_ADDRESSES ? outOfRange() : all.map(parseAddress);
}

function parseAddress(body: Uint8Array): Address {
  const { bytes } = read(body);
  // A browser cannot use the name, the third text: the certificate has to be that of addr.
  const [carrier, addr] = [1, 2, 3].map((num) => lastText(bytes[num], MAX_ADDRESS));
  const hashes = bytes[4] ?? [];
  return carrier && addr && hashes.length <= MAX_HASHES && hashes.every((h) => h.length === 32) ? { carrier, addr, hashes } : outOfRange();
}

export function digestFrame(snapshots: number, full: boolean): Uint8Array {
  return frameOf(Kind.DigestRequest, scratch.reset().number(1, snapshots).number(2, full).peek());
}

/** A number of ticks or steps per second, as a rational. */
export interface Rate {
  num: number;
  den: number;
}

/** The time at which a tick is due, in ms of the server's clock. */
export interface Epoch {
  tick: number;
  at: number;
}

/** A line of scaled time, in ms. */
export interface TimeScale {
  num: number;
  den: number;
  tick: number;
  at: number;
}

/** The server's answer to an admitted client. Times are ms. */
export interface Welcome {
  protocol: number;
  minor: number;
  id: number;
  instance: Uint8Array;
  room: string;
  tickRate: Rate;
  fixedRate: Rate;
  sendEvery: number;
  epoch: Epoch;
  server: number;
  scale?: TimeScale;
  secret: Uint8Array;
  keep: number;
  resumed: boolean;
  /** To a moving client: the number of the server's first datagram in the other room. */
  datagram: number;
  /** Whether the client may ask to move. */
  moves: boolean;
  /**
   * A bit for each method that the room's game handles; empty if the server does not report them.
   */
  handles: Uint8Array;
}

const NS = 1e6; // nanoseconds of a millisecond
const MAX_TIME = 2 ** 63;

/** A time of the wire in milliseconds. */
function time(ns: number): number {
  return ns < MAX_TIME ? ns / NS : outOfRange();
}

/** The fields of a message at their numbers: numbers, and the contents of sized fields in their order. */
function read(body: Uint8Array): { numbers: number[]; bytes: (Uint8Array[] | undefined)[] } {
  const numbers: number[] = Array(20).fill(0);
  const bytes: Uint8Array[][] = [];
  const w = new Walker(body, EVERY);
  while (w.next()) {
    if (w.sized) (bytes[w.num] ??= []).push(w.body);
    else numbers[w.num] = w.value;
  }
  return { numbers, bytes };
}

const EVERY: readonly number[] = Array(20).fill(VARINT | SIZED);

function lastText(all: Uint8Array[] = [], most = MAX_TEXT): string {
  const last = all.at(-1) ?? NONE;
  return last.length > most ? outOfRange() : textOf(last);
}

const NONE = new Uint8Array(0);

export function parseWelcome(body: Uint8Array): Welcome {
  const { numbers: n, bytes } = read(body);
  const last = (num: number): Uint8Array => bytes[num]?.at(-1)?.slice() ?? NONE;
  return {
    protocol: n[1]!,
    minor: n[2]!,
    id: n[3] || outOfRange(),
    instance: last(4),
    room: textOf(last(5)),
    tickRate: parseRate(last(6)),
    fixedRate: parseRate(last(7)),
    sendEvery: n[8]!,
    epoch: parseEpoch(last(9)),
    server: time(n[10]!),
    scale: bytes[12]?.map(parseTimeScale).at(-1),
    secret: last(13),
    keep: Math.min(n[14]!, MAX_TIME) / NS,
    resumed: n[15] !== 0,
    datagram: n[16]!,
    moves: n[18] !== 0,
    handles: last(19),
  };
}

/** The numbers of a message, each at the number of its field. */
function numbers(body: Uint8Array): number[] {
  return read(body).numbers;
}

const MOST_RATE = 2 ** 30;

function parseRate(body: Uint8Array): Rate {
  const [, num, den] = numbers(body);
  return num > 0 && den > 0 && num <= MOST_RATE && den <= MOST_RATE ? { num, den } : outOfRange();
}

export function parseEpoch(body: Uint8Array): Epoch {
  const [, tick, at] = numbers(body);
  return { tick, at: time(at) };
}

/** A line of scaled time, if its speed is valid. */
export function parseTimeScale(body: Uint8Array): TimeScale {
  const [, num, den, tick, at] = numbers(body);
  return den >= 1 && den <= 1e6 && num <= 16 * den ? { num, den, tick, at: time(at) } : outOfRange();
}

/** A level of overload from 0 to 3, and the number of ticks between snapshots. */
export function parseOverload(body: Uint8Array): { level: number; sendEvery: number } {
  const [, level, sendEvery] = numbers(body);
  return { level: Math.min(Math.max(level, 1) - 1, 3), sendEvery };
}

export function parseCount(body: Uint8Array): number {
  return numbers(body)[1];
}

/** A code and a text, of `close` and of `refused`. */
export function parseClose(body: Uint8Array): { code: number; text: string } {
  const { numbers, bytes } = read(body);
  return { code: numbers[1]!, text: lastText(bytes[2]) };
}

export function parsePart(body: Uint8Array): { size: number; data: Uint8Array } {
  const { numbers, bytes } = read(body);
  return { size: numbers[1]!, data: bytes[2]?.at(-1) ?? NONE };
}

/** One RPC, one question or one answer. */
export interface Message {
  method: number;
  stage: number;
  call: number;
  reply: boolean;
  code: number;
  text: string;
  payload: Uint8Array;
  tick: number;
  reliable: boolean;
}

const MESSAGE = [0, VARINT, VARINT, VARINT, VARINT, VARINT, SIZED, SIZED, VARINT];

export function parseMessage(body: Uint8Array, reliable: boolean): Message {
  const m: Message = { method: 0, stage: 0, call: 0, reply: false, code: 0, text: "", payload: new Uint8Array(0), tick: 0, reliable };
  const w = new Walker(body, MESSAGE);
  while (w.next()) {
    switch (w.num) {
      case 1: m.method = w.value; break;
      case 2: m.stage = w.value; break;
      case 3: m.call = w.value; break;
      case 4: m.reply = w.value !== 0; break;
      case 5: m.code = w.value; break;
      case 6: m.text = lastText([w.body]); break;
      case 7: m.payload = w.body; break;
      case 8: m.tick = w.value; break;
    }
  }
  return m.stage > 70 || m.stage % 10 !== 0 ? outOfRange() : m;
}

export function encodeMessage(m: { method: number; stage: number; call: number; payload: Uint8Array }): Uint8Array {
  return new Writer(m.payload.length + 32).number(1, m.method).number(2, m.stage).number(3, m.call).body(7, m.payload).peek();
}

/** The fields of a datagram. */
export const enum Field {
  Number = 1,
  Acks,
  TimeRequest,
  TimeReply,
  State,
  Messages,
  Padding,
  Inputs,
  InputStatus,
  Mispredicted,
}

export const DATAGRAM = [
  0, VARINT | ONCE, SIZED | ONCE, SIZED | ONCE, SIZED | ONCE, SIZED | ONCE, SIZED, 0, SIZED | ONCE, SIZED | ONCE,
];

/** The three times of a time reply. */
export function parseTimes(body: Uint8Array): [number, number, number] {
  const [, t1, t2, t3] = numbers(body);
  return [time(t1), time(t2), time(t3)];
}

/** The server's report on the inputs. */
export interface InputStatus {
  newest: number;
  before: number;
  early: number;
  missed: number;
  /** The generation of the inputs, modulo 4. */
  generation: number;
}

const HOUR_US = 3600e6;

export function parseInputStatus(body: Uint8Array): InputStatus {
  const [, newest, before, zigzag, missed, generation] = numbers(body);
  const us = zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2;
  return { newest, before: before % 65536, early: Math.min(Math.max(us, -HOUR_US), HOUR_US) / 1000, missed, generation: generation % 4 };
}
