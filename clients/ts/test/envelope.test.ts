// Frames and datagrams, by the examples of docs/WIRE.md.

import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryConn } from "../src/net/memory.js";
import { Arrived, Link, type Arrival } from "../src/session/link.js";
import { Window } from "../src/wire/window.js";
import { closeFrame, countFrame, Cutter, digestFrame, encodeMessage, frameOf, Kind, moveFrame, parseClose, parseFrame, parseRefusedMove, parseWelcome } from "../src/wire/frames.js";
import { Refusal } from "../src/wire/refusal.js";
import { clip, Walker, Writer } from "../src/wire/protobuf.js";
import { example } from "./page.js";
import { fields, say } from "./rig.js";

/** A connection, its sent datagrams and frames, and its arrivals. */
function linkAt(now: number) {
  const [client, server] = MemoryConn.pair();
  const sent = { stream: [] as number[], datagrams: [] as Uint8Array[], closed: [] as unknown[] };
  server.start({
    stream: (b) => sent.stream.push(...b),
    datagram: (b) => sent.datagrams.push(b),
    closed: (code, text) => sent.closed.push([code, text]),
  });
  const traffic = { bytesIn: 0, bytesOut: 0, datagramsIn: 0, datagramsOut: 0, dropped: 0 };
  const link = new Link(client, () => now, (fn) => fn(), traffic);
  const hear = () => (client.deliver(), sent);
  return { link, traffic, hear };
}

/** The arrivals of a frame of docs/WIRE.md. */
function framed(name: string): Arrival[] {
  const { link } = linkAt(1);
  new Cutter().take(example(name), () => 16384, (f) => (link.frame(f), true));
  return link.take();
}

test("a leading U+FEFF of a text stays", () => {
  const text = "\ufeffbye";
  assert.deepEqual(parseClose(new Writer().number(1, 3).text(2, text).done()), { code: 3, text });
});

test("the frames of a server are read as the page says", () => {
  assert.deepEqual(framed("frame-epoch"), [{ kind: Arrived.Epoch, epoch: { tick: 300, at: 5000 } }]);
  assert.deepEqual(framed("frame-overload"), [{ kind: Arrived.Overload, level: 1, sendEvery: 2 }]);
  assert.deepEqual(framed("frame-time-scale"), [{ kind: Arrived.Scale, scale: { num: 1, den: 3, tick: 300, at: 5000 } }]);
  assert.deepEqual(framed("frame-accepted"), [{ kind: Arrived.Accepted, at: 1, value: 12 }]);
  assert.deepEqual(framed("frame-received"), [{ kind: Arrived.Received, at: 1, value: 16 }]);
  assert.deepEqual(framed("frame-closing"), [{ kind: Arrived.Closing, at: 1, value: 30e9 }]);
  assert.deepEqual(framed("frame-state"), [{ kind: Arrived.Record, at: 1, bytes: Uint8Array.of(0xde, 0xad, 0xbe, 0xef) }]);
  assert.deepEqual(framed("frame-moved"), [{ kind: Arrived.Gone, code: 22, text: "a@box" }]);
  const hash = new Uint8Array(32);
  hash[0] = 0xca;
  hash[31] = 0xfe;
  const to = [
    { carrier: "quic", addr: "[::1]:7777", hashes: [] },
    { carrier: "websocket", addr: "wss://b.example/netloop", hashes: [] },
    { carrier: "webtransport", addr: "[::1]:7777", hashes: [hash] },
  ];
  assert.deepEqual(framed("frame-moved-away"), [{ kind: Arrived.Travel, moved: { ticket: "a@box", to } }]);
  assert.deepEqual(parseRefusedMove(parseFrame(example("frame-refused-moved").subarray(2)).body), { ticket: "a@box", to });
  assert.deepEqual(framed("frame-close"), [{ kind: Arrived.Gone, code: 3, text: "cheated" }]);
  const [reply] = framed("frame-reply");
  assert.deepEqual(reply.kind === Arrived.Message && { ...reply.message, payload: 0 }, {
    method: 3, stage: 0, call: 9, reply: true, code: 7, text: "no", payload: 0, tick: 0, reliable: true,
  });
});

test("a welcome and a refusal are read as the page says", () => {
  const welcome = parseWelcome(parseFrame(example("frame-welcome").subarray(1)).body);
  assert.deepEqual(
    { ...welcome, instance: [...welcome.instance], secret: [...welcome.secret], handles: [...welcome.handles] },
    {
      protocol: 1, minor: 2, id: 7, instance: [1, 2], room: "", tickRate: { num: 60, den: 1 }, fixedRate: { num: 60, den: 1 }, sendEvery: 1,
      epoch: { tick: 300, at: 5000 }, server: 5000.1, scale: undefined, secret: [], keep: 0, resumed: false, datagram: 0, moves: false, handles: [],
    },
  );
  assert.deepEqual(parseClose(parseFrame(example("frame-refused").subarray(1)).body), { code: 8, text: "8 of 8" });
});

test("the frames of a client are those of the page", () => {
  assert.deepEqual(closeFrame(3, "cheated"), example("frame-close"));
  assert.deepEqual(moveFrame("a@box"), example("frame-move"));
  assert.deepEqual(countFrame(Kind.StateApplied, 9), example("frame-applied"));
  assert.deepEqual(countFrame(Kind.MessagesReceived, 16), example("frame-received"));
  assert.deepEqual(digestFrame(120, false), example("frame-digest"));
  assert.deepEqual(digestFrame(0, true), example("frame-full"));
  assert.deepEqual(frameOf(Kind.SchemaAccepted, new Uint8Array(0)), example("frame-schema-accepted"));
  const message = encodeMessage({ method: 3, stage: 30, call: 9, payload: Uint8Array.of(0x68, 0x69) });
  assert.deepEqual(frameOf(Kind.Message, message), example("frame-message"));
});

test("the datagrams of a client are those of the page", () => {
  const { link, hear } = linkAt(1);
  const acks = { newest: 100, runs: [4, 1, 2] };
  link.requestTime();
  link.flush(true, acks, 0);
  link.flush(false, acks, 300); // A report alone needs no datagram.
  link.setInputs(Uint8Array.of(0xca, 0xfe));
  link.flush(false, acks, 300);
  assert.deepEqual(hear().datagrams, [example("datagram-client"), example("datagram-mispredicted")]);
});

test("a report of mispredictions fits beside the messages of a datagram", () => {
  for (let size = 1000; size <= 1086; size++) {
    const { link, hear } = linkAt(1);
    for (const payload of [new Uint8Array(size), new Uint8Array(1086 - size)]) link.send({ method: 1, stage: 0, call: 0, payload, reliable: false });
    link.flush(true, undefined, Number.MAX_SAFE_INTEGER);
    const { datagrams } = hear();
    assert.ok(datagrams.every((d) => d.length <= 1150), `${datagrams.map((d) => d.length)} bytes`);
    assert.equal(fields(datagrams[0]!)[10], Number.MAX_SAFE_INTEGER);
  }
});

test("mispredictions are reported at most once a second", () => {
  const { link, hear } = linkAt(1);
  for (let i = 0; i < 5; i++) link.flush(true, undefined, 7 + i);
  assert.deepEqual(hear().datagrams.map((d) => fields(d)[10]), [7, undefined, undefined, undefined, undefined]);
});

test("the datagrams of a server are read as the page says", () => {
  const { link } = linkAt(3);
  link.datagram(example("datagram-server"));
  link.datagram(example("datagram-input-status"));
  const all = link.take();
  assert.deepEqual(all[0], { kind: Arrived.Time, times: [1, 2, 2.0003, 3] });
  assert.deepEqual(all[1], { kind: Arrived.State, at: 3, bytes: Uint8Array.of(0xde, 0xad, 0xbe, 0xef) });
  assert.equal(all[2].kind === Arrived.Message && all[2].message.method, 5);
  assert.deepEqual(all[4], { kind: Arrived.Inputs, status: { newest: 300, before: 5, early: -1.5, missed: 7, generation: 1 } });
});

test("a datagram counts once, in whatever order it comes, and not if it is 1 024 behind", () => {
  const seen = new Window();
  for (const n of [1, 5, 3, 2, 1000, 4, 1025]) assert.ok(seen.add(n), `${n} is new`);
  for (const n of [1, 5, 3, 2, 1000, 4, 1025]) assert.ok(!seen.add(n), `${n} is not`);
  assert.ok(seen.add(2 ** 52) && !seen.add(2 ** 52) && seen.add(2 ** 52 + 500));
  assert.ok(!seen.add(2 ** 60), "a number that no double holds");
});

test("what breaks the rules of the stream closes the connection", () => {
  const cases: [string, Uint8Array][] = [
    ["two known fields", Uint8Array.of(0x2a, 0, 0x3a, 0)],
    ["no protobuf", Uint8Array.of(0x2a, 9)],
    ["a frame for a server", Uint8Array.of(0x0a, 0)],
    ["an epoch with a time beyond 2^63", Uint8Array.of(0x2a, 11, 0x10, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1)],
    ["a speed that is none", Uint8Array.of(0x6a, 2, 0x08, 1)],
    ["a destination with 9 addresses", say.moved("t@b", Array(9).fill({ carrier: "quic", addr: "b:1" })).subarray(2)],
    ["an address with 5 hashes", say.moved("t@b", [{ carrier: "quic", addr: "b:1", hashes: Array(5).fill(new Uint8Array(32)) }]).subarray(2)],
    ["a destination without an address", say.moved("t@b", []).subarray(1)],
    ["an address of 257 bytes", say.moved("t@b", [{ carrier: "quic", addr: "b".repeat(257) }]).subarray(2)],
    ["an address that is empty", say.moved("t@b", [{ carrier: "quic", addr: "" }]).subarray(1)],
    ["a carrier without a name", say.moved("t@b", [{ carrier: "", addr: "b:1" }]).subarray(1)],
    ["a hash that is none", say.moved("t@b", [{ carrier: "quic", addr: "b:1", hashes: [new Uint8Array(31)] }]).subarray(1)],
  ];
  for (const [what, bytes] of cases) {
    const { link, hear } = linkAt(1);
    link.frame(bytes);
    const [gone] = link.take();
    assert.equal(gone?.kind === Arrived.Gone && gone.code, 9, what);
    assert.equal(hear().stream[1], 0x3a, `${what}: a close is sent`);
  }
});

test("a frame without a known field is skipped and counted, and so is a message that is malformed", () => {
  const { link, traffic } = linkAt(1);
  link.frame(new Uint8Array(0));
  link.frame(Uint8Array.of(0xa2, 0x06, 1, 0)); // field 100
  link.frame(Uint8Array.of(0x22, 2, 0x10, 33)); // a stage that does not exist
  assert.deepEqual([link.take(), traffic.dropped, link.ending], [[], 3, false]);
});

test("frames come whole however the stream is cut", () => {
  const bytes = [...example("frame-epoch"), ...example("frame-overload"), ...example("frame-close")];
  for (let cut = 1; cut < 12; cut++) {
    const cutter = new Cutter();
    const frames: number[] = [];
    for (let i = 0; i < bytes.length; i += cut) {
      assert.ok(cutter.take(Uint8Array.from(bytes.slice(i, i + cut)), () => 100, (f) => (frames.push(f[0]), true)));
    }
    assert.deepEqual(frames, [0x2a, 0x42, 0x3a]);
  }
  const never = () => assert.fail("a frame that is too long");
  assert.ok(!new Cutter().take(Uint8Array.of(0x81, 0x80, 0x01), () => 16384, never));
  assert.ok(!new Cutter().take(Uint8Array.of(0x81, 0x80, 0x80, 0x01), () => 16384, never), "a length of four bytes");
});

test("unreliable messages fill datagrams and never exceed them, and the oldest make room", () => {
  const { link, hear, traffic } = linkAt(1);
  const payload = new Uint8Array(500);
  for (let i = 0; i < 100; i++) assert.ok(link.send({ method: i + 1, stage: 0, call: 0, payload, reliable: false }));
  link.flush(true, undefined, 0);
  const { datagrams } = hear();
  assert.ok(datagrams.every((d) => d.length <= 1150 && d.length > 1000), String(datagrams.map((d) => d.length)));
  assert.equal(2 * datagrams.length + traffic.dropped, 100);
  assert.ok(!link.send({ method: 1, stage: 0, call: 0, payload: new Uint8Array(1087), reliable: false }), "it fits no datagram");
});

test("a text is cut to 512 bytes without half a character", () => {
  assert.equal(clip("a".repeat(600)).length, 512);
  assert.equal(clip("ä".repeat(600)), "ä".repeat(256));
  const cut = clip("😀".repeat(200));
  assert.equal(cut, "😀".repeat(128));
});

test("numbers, lengths and groups of protobuf are walked as protobuf says", () => {
  const w = new Walker(Uint8Array.of(0x0b, 0x10, 1, 0x0c, 0x10, 0x80, 0x80, 0, 0x09, 1, 2, 3, 4, 5, 6, 7, 8), [0, 3, 3]);
  assert.ok(w.next() && w.num === 2 && w.value === 0, "behind a group, and longer than it has to be");
  assert.ok(!w.next(), "fixed64 is skipped");
  for (const bad of [[0x08], [0x0a, 2, 1], [0x0b, 0x10, 1], [0x0c], [0x00, 1], [0x0d, 1, 2], [0x08, ...Array(10).fill(0xff), 1]]) {
    const walker = new Walker(Uint8Array.from(bad), [0, 3, 3]);
    assert.throws(() => { while (walker.next()); }, Refusal, String(bad));
  }
  assert.deepEqual(new Writer(1).number(1, 2 ** 40).done(), Uint8Array.of(8, 128, 128, 128, 128, 128, 32));
});
