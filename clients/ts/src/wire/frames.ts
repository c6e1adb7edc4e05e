// Frames: how they are cut from the stream, and what is in each of them.

import { clip, MAX_TEXT, ONCE, SIZED, STRICT, textOf, VARINT, Walker, Writer } from "./protobuf.js";

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
}

const FRAME: readonly number[] = [0, ...Array(16).fill(SIZED)];

/** The only known field of a frame, Kind.None if there is none, or undefined if it breaks the rules. */
export function parseFrame(frame: Uint8Array): { kind: Kind; body: Uint8Array } | undefined {
  let kind = Kind.None;
  let body = frame;
  const w = new Walker(frame, FRAME);
  while (w.next()) {
    if (kind !== Kind.None) return undefined;
    kind = w.num;
    body = w.bytes;
  }
  return w.failed ? undefined : { kind, body };
}

/** Cuts a stream into frames. A frame that arrives whole is not copied. */
export class Cutter {
  private rest: Uint8Array = new Uint8Array(0);

  /** Takes bytes of the stream and hands out the frames in them; false: one is longer than it may be. */
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

/** A frame of one field, behind its length. */
export function frameOf(kind: Kind, body: Uint8Array): Uint8Array {
  const inner = new Writer(body.length + 16).sized(kind, body).peek();
  const w = new Writer(inner.length + 4);
  w.uvarint(inner.length);
  w.raw(inner);
  return w.peek();
}

/** A frame whose only content is a number. */
export function countFrame(kind: Kind, n: number): Uint8Array {
  return frameOf(kind, scratch.reset().number(1, n).peek());
}

/** What a client says first. */
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
}

/** Where a client goes on. */
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
    .bytes(8, h.params)
    .text(9, h.token)
    .text(10, h.build);
  if (h.resume) {
    const r = h.resume;
    w.sized(11, new Writer().bytes(1, r.token).number(2, r.received).number(3, r.kept).number(4, r.attempt).peek());
  }
  w.text(13, h.ticket).number(14, h.spectate);
  return frameOf(Kind.Hello, w.peek());
}

export function closeFrame(code: number, text: string): Uint8Array {
  return frameOf(Kind.Close, new Writer().number(1, code).text(2, clip(text)).peek());
}

export function digestFrame(snapshots: number, full: boolean): Uint8Array {
  return frameOf(Kind.DigestRequest, scratch.reset().number(1, snapshots).number(2, full).peek());
}

/** A number of a second, as a rational. */
export interface Rate {
  num: number;
  den: number;
}

/** Which tick is due when, in ms of the server's clock. */
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

/** The server's answer to a client that it takes. Times are ms. */
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
}

const NS = 1e6; // nanoseconds of a millisecond
const MAX_TIME = 2 ** 63;

function time(w: Walker): number {
  if (w.value >= MAX_TIME) w.fail();
  return w.value / NS;
}

const WELCOME = [0, VARINT, VARINT, VARINT, SIZED, SIZED, SIZED, SIZED, VARINT, SIZED, VARINT, SIZED, SIZED, SIZED, VARINT, VARINT];
const NUMBERS = [0, VARINT, VARINT, VARINT, VARINT, VARINT];
const CLOSE = [0, VARINT, SIZED];

export function parseWelcome(body: Uint8Array): Welcome | undefined {
  const none = { num: 0, den: 0 };
  const w: Welcome = {
    protocol: 0, minor: 0, id: 0, instance: new Uint8Array(0), room: "", tickRate: none, fixedRate: none, sendEvery: 0,
    epoch: { tick: 0, at: 0 }, server: 0, secret: new Uint8Array(0), keep: 0, resumed: false,
  };
  const f = new Walker(body, WELCOME);
  while (f.next()) {
    switch (f.num) {
      case 1: w.protocol = f.value; break;
      case 2: w.minor = f.value; break;
      case 3: w.id = f.value; break;
      case 4: w.instance = f.bytes.slice(); break;
      case 5: w.room = textOf(f.bytes) ?? (f.fail(), ""); break;
      case 6: w.tickRate = parseRate(f) ?? none; break;
      case 7: w.fixedRate = parseRate(f) ?? none; break;
      case 8: w.sendEvery = f.value; break;
      case 9: w.epoch = parseEpoch(f.bytes) ?? (f.fail(), w.epoch); break;
      case 10: w.server = time(f); break;
      case 12: w.scale = parseTimeScale(f.bytes) ?? (f.fail(), undefined); break;
      case 13: w.secret = f.bytes.slice(); break;
      case 14: w.keep = Math.min(f.value, MAX_TIME) / NS; break;
      case 15: w.resumed = f.value !== 0; break;
    }
  }
  return f.failed || w.id === 0 || !sound(w.tickRate) || !sound(w.fixedRate) ? undefined : w;
}

function parseRate(f: Walker): Rate | undefined {
  const r = { num: 0, den: 0 };
  const w = new Walker(f.bytes, NUMBERS);
  while (w.next()) {
    if (w.num === 1) r.num = w.value;
    if (w.num === 2) r.den = w.value;
  }
  if (w.failed) f.fail();
  return r;
}

const MOST_RATE = 2 ** 30;

function sound(r: Rate): boolean {
  return r.num > 0 && r.den > 0 && r.num <= MOST_RATE && r.den <= MOST_RATE;
}

export function parseEpoch(body: Uint8Array): Epoch | undefined {
  const e = { tick: 0, at: 0 };
  const w = new Walker(body, NUMBERS);
  while (w.next()) {
    if (w.num === 1) e.tick = w.value;
    if (w.num === 2) e.at = time(w);
  }
  return w.failed ? undefined : e;
}

/** A line of scaled time, if its speed is one. */
export function parseTimeScale(body: Uint8Array): TimeScale | undefined {
  const t = { num: 0, den: 0, tick: 0, at: 0 };
  const w = new Walker(body, NUMBERS);
  while (w.next()) {
    if (w.num === 1) t.num = w.value;
    if (w.num === 2) t.den = w.value;
    if (w.num === 3) t.tick = w.value;
    if (w.num === 4) t.at = time(w);
  }
  return w.failed || t.den < 1 || t.den > 1e6 || t.num > 16 * t.den ? undefined : t;
}

/** A level of overload from 0 to 3, and every how many ticks a snapshot is sent. */
export function parseOverload(body: Uint8Array): { level: number; sendEvery: number } | undefined {
  const o = { level: 0, sendEvery: 0 };
  const w = new Walker(body, NUMBERS);
  while (w.next()) {
    if (w.num === 1) o.level = Math.min(Math.max(w.value, 1) - 1, 3);
    if (w.num === 2) o.sendEvery = w.value;
  }
  return w.failed ? undefined : o;
}

export function parseCount(body: Uint8Array): number | undefined {
  let n = 0;
  const w = new Walker(body, [0, VARINT]);
  while (w.next()) n = w.value;
  return w.failed ? undefined : n;
}

/** A code and a text, of `close` and of `refused`. */
export function parseClose(body: Uint8Array): { code: number; text: string } | undefined {
  const c = { code: 0, text: "" };
  const w = new Walker(body, CLOSE);
  while (w.next()) {
    if (w.num === 1) c.code = w.value;
    else c.text = shortText(w);
  }
  return w.failed ? undefined : c;
}

function shortText(w: Walker): string {
  const s = w.bytes.length > MAX_TEXT ? undefined : textOf(w.bytes);
  if (s === undefined) w.fail();
  return s ?? "";
}

export function parsePart(body: Uint8Array): { size: number; data: Uint8Array } | undefined {
  const p = { size: 0, data: new Uint8Array(0) as Uint8Array };
  const w = new Walker(body, [0, VARINT, SIZED]);
  while (w.next()) {
    if (w.num === 1) p.size = w.value;
    else p.data = w.bytes;
  }
  return w.failed ? undefined : p;
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

export function parseMessage(body: Uint8Array, reliable: boolean): Message | undefined {
  const m: Message = { method: 0, stage: 0, call: 0, reply: false, code: 0, text: "", payload: new Uint8Array(0), tick: 0, reliable };
  const w = new Walker(body, MESSAGE);
  while (w.next()) {
    switch (w.num) {
      case 1: m.method = w.value; break;
      case 2: m.stage = w.value; break;
      case 3: m.call = w.value; break;
      case 4: m.reply = w.value !== 0; break;
      case 5: m.code = w.value; break;
      case 6: m.text = shortText(w); break;
      case 7: m.payload = w.bytes; break;
      case 8: m.tick = w.value; break;
    }
  }
  return w.failed || m.stage > 70 || m.stage % 10 !== 0 ? undefined : m;
}

export function encodeMessage(m: { method: number; stage: number; call: number; payload: Uint8Array }): Uint8Array {
  return new Writer(m.payload.length + 32).number(1, m.method).number(2, m.stage).number(3, m.call).bytes(7, m.payload).peek();
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
}

export const DATAGRAM = [
  0, VARINT | ONCE, SIZED | ONCE, SIZED | ONCE, SIZED | ONCE, SIZED | ONCE, SIZED, 0, SIZED | ONCE, SIZED | ONCE,
];

/** Three times of a time reply, in ns. */
export function parseTimes(body: Uint8Array): [number, number, number] | undefined {
  const t: [number, number, number] = [0, 0, 0];
  const w = new Walker(body, [0, VARINT, VARINT, VARINT]);
  while (w.next()) t[w.num - 1] = time(w);
  return w.failed ? undefined : t;
}

/** What has become of the inputs. */
export interface InputStatus {
  newest: number;
  before: number;
  early: number;
  missed: number;
}

const HOUR_US = 3600e6;

export function parseInputStatus(body: Uint8Array): InputStatus | undefined {
  const s = { newest: 0, before: 0, early: 0, missed: 0 };
  const w = new Walker(body, NUMBERS);
  while (w.next()) {
    switch (w.num) {
      case 1: s.newest = w.value; break;
      case 2: s.before = w.value % 65536; break;
      case 3: {
        const us = w.value % 2 === 0 ? w.value / 2 : -(w.value + 1) / 2;
        s.early = Math.min(Math.max(us, -HOUR_US), HOUR_US) / 1000;
        break;
      }
      case 4: s.missed = w.value; break;
    }
  }
  return w.failed ? undefined : s;
}

/** Whether acknowledgements are well formed: a client gets none, and drops a datagram whose are not. */
export function soundAcks(body: Uint8Array): boolean {
  let runs = new Uint8Array(0) as Uint8Array;
  let newest = 0;
  const w = new Walker(body, [0, VARINT, SIZED | ONCE | STRICT]);
  while (w.next()) {
    if (w.num === 1) newest = w.value;
    else runs = w.bytes;
  }
  if (w.failed) return false;
  let n = 0;
  let span = 0;
  for (let at = 0; at < runs.length; n++) {
    let k = 0;
    let scale = 1;
    let more = true;
    while (more && at < runs.length && scale < 2 ** 64) {
      const c = runs[at++]!;
      k += (c & 0x7f) * scale;
      scale *= 128;
      more = c >= 128;
    }
    span += k;
    if (more || k === 0 || span > 1024 || span - 1 > newest || n >= 63) return false;
  }
  return n % 2 === 1;
}
