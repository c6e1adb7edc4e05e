// The examples of docs/WIRE.md, with the values that the page gives for them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { InputWriter } from "../src/codec/inputs.js";
import { editCell } from "../src/codec/list.js";
import { cellsOf, decodeMessage, encodeMessage } from "../src/codec/message.js";
import { readSchema } from "../src/codec/schema.js";
import { showLeaf } from "../src/codec/show.js";
import { hashed } from "../src/state/digest.js";
import { ReplicatedObject, type Memory } from "../src/state/object.js";
import { Replica } from "../src/state/replica.js";
import { ByteReader, ByteWriter } from "../src/wire/bytes.js";
import { example } from "./page.js";
import { classOf, messageOf } from "../src/codec/text.js";

/** A replica of one class with these fields. */
function replicaOf(fields: string, tick: number): Replica {
  return new Replica({ classes: [classOf(fields)], methods: [], input: undefined }, tick);
}

/** The object in a slot, in its first generation. */
function at(r: Replica, slot: number) {
  return r.get(slot * 2 ** 32 + 1);
}

test("the tables of the page are read", () => {
  const part = example("frame-schema-part");
  const schema = readSchema(part.subarray(part.length - 48));
  assert.deepEqual(
    schema.classes.map((c) => [c.name, c.fields.text]),
    [["pos", "{X float32 quant=1/256;}"]],
  );
  const [m] = schema.methods;
  assert.deepEqual([m.id, m.name, m.call, m.reliable, m.stages, m.message.text], [1, "hop", false, true, [50], "{N uint8;}"]);
});

test("the packets of a connection are read", () => {
  const r = replicaOf("{X float32 quant=1/256; Y float32 quant=1/256; Armed bool; Name string max=8}", 100);
  const ann = { X: 1, Y: -0.5, Armed: true, Name: "ann" };
  const bo = { X: 1.0078125, Y: -0.5, Armed: false, Name: "bo" };
  const zero = { X: 0, Y: 0, Armed: false, Name: "" };
  const steps: [string, number, number, object, object | undefined][] = [
    ["state-full", 100, 100, ann, zero],
    ["state-delta", 101, 101, bo, zero],
    ["state-repeat", 103, 103, { ...bo, Y: 0.5 }, { ...zero, Y: 1 }],
    ["state-despawn", 104, 103, { ...bo, Y: 0.5 }, undefined],
    ["state-digest", 105, 103, { ...bo, Y: 0.5 }, undefined],
    ["state-older", 108, 106, { ...bo, Y: 0 }, undefined],
  ];
  let id = 0;
  for (const [name, tick, version, first, second] of steps) {
    const got = r.apply(example(name));
    assert.deepEqual([got.kind, got.why, got.id, got.tick, got.whole], ["applied", "", ++id, tick, true], name);
    assert.equal(got.digest, name === "state-digest" ? "equal" : "none");
    assert.deepEqual([at(r, 0)?.state, at(r, 0)?.owner, at(r, 0)?.tick], [first, 7, version], name);
    assert.deepEqual(at(r, 1)?.state, second, name);
  }
  assert.deepEqual(r.acknowledgement(), { newest: 6, runs: [6] });
});

test("a packet with floats that bend, swing and jump is read", () => {
  const r = replicaOf("{X float32; V float32; W float32}", 207);
  const internal = r as unknown as { slots: ReplicatedObject[]; bytes: Memory };
  const c = classOf("{X float32; V float32; W float32}");
  const o = new ReplicatedObject(1, c, 200, internal.bytes);
  o.shown = true;
  for (const [tick, x, v] of [[200, 0, 8], [203, 2.25, -8], [206, 9, 8]]) {
    o.store({ tick, owner: 0, n: Float64Array.of(x, v, 1), x: [] });
  }
  internal.slots.push(o);
  assert.equal(r.apply(example("state-bent")).why, "");
  assert.deepEqual(o.state, { X: 12.25, V: -8, W: Math.fround(1e30) });
});

test("a packet with an object of which not all may be read is read", () => {
  const r = replicaOf("{X int32; Ammo int32; Name string max=8; Y int8}", 100);
  assert.deepEqual([r.apply(example("state-masked")).why, at(r, 0)?.state, at(r, 0)?.owner], ["", { X: 5, Ammo: 0, Name: "", Y: -2 }, 7]);
  assert.deepEqual(hashed(at(r, 0) as ReplicatedObject, new ByteWriter()).done(), example("digest-masked"));
});

test("a large record is read", () => {
  const r = replicaOf("{Text string max=2000}", 300);
  const got = r.applyLarge(example("state-record"));
  assert.deepEqual([got.kind, got.id, got.tick, r.recordsApplied], ["applied", 1, 301, 1]);
  assert.deepEqual([at(r, 1)?.state, at(r, 1)?.owner, at(r, 1)?.lifetime], [{ Text: "the quick brown fox jumps" }, 7, 301]);
});

const PLAIN =
  "{Target ref;At instant;Damage int16;Angle float32;Force float64 quant=1/100;Crit bool;Tag [2]byte;Path []{X int8; Y int8} max=64;Note string max=128;}";
const LISTS = "{Items []{ID uint16; Count int8} max=64;Ammo map[string max=128]uint8 max=64;Seen set[int16] max=64;}";
const STEPS = "{X float32 quant=1/8 steps=-800:800;Heat float64 quant=1/10 steps=200:900;Q quat bits=10;None quat bits=4;}";

const items = (...pairs: number[][]) => pairs.map(([ID, Count]) => ({ ID, Count }));
const lists = {
  Items: items([1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [6, 6]),
  Ammo: new Map([["bolt", 5], ["arrow", 20], ["stone", 9]]),
  Seen: new Set([3, -4]),
};

test("messages are written and read", () => {
  const cases: [string, string, object][] = [
    ["message-proto", "{Last proto arena.v1.Said max=64; None proto arena.v1.Said max=64;}", { Last: example("message-proto").subarray(1, 10), None: null }],
    ["message-lists", LISTS, lists],
    [
      "message-plain",
      PLAIN,
      {
        Target: 2 ** 32 + 3,
        At: 1500n,
        Damage: -3,
        Angle: 0.5,
        Force: 12.34,
        Crit: true,
        Tag: Uint8Array.of(0xca, 0xfe),
        Path: [{ X: 1, Y: -1 }, { X: 2, Y: 0 }],
        Note: "hé",
      },
    ],
  ];
  for (const [name, text, value] of cases) {
    const type = messageOf(text);
    assert.equal(Buffer.from(encodeMessage(type, value)).toString("hex"), Buffer.from(example(name)).toString("hex"), name);
    assert.deepEqual(decodeMessage(type, example(name)), value, name);
  }
});

test("quantised values and rotations are written and read", () => {
  const type = messageOf(STEPS);
  const value = { X: -99.5, Heat: 36.6, Q: [-0.5, 0.5, 0.1, -0.7], None: [0, 0, 0, 0] };
  assert.deepEqual(encodeMessage(type, value), example("message-steps"));
  const got = decodeMessage(type, example("message-steps")) as typeof value;
  assert.deepEqual([got.X, got.Heat, got.None], [-99.5, 36.6, [0, 0, 0, 0]]);
  got.Q.forEach((c, i) => assert.ok(Math.abs(c - [0.4997, -0.4997, -0.0996, 0.7][i]) < 2e-3, `${got.Q}`));
  assert.deepEqual(encodeMessage(type, got), example("message-steps"));
});

/** The message that results from the differences of some leaves. */
function edited(text: string, message: Uint8Array, differences: Uint8Array, leaves: number): unknown[] {
  const layout = messageOf(text).layout!;
  const { n, x } = cellsOf(layout, message);
  const r = new ByteReader();
  r.open(differences, 0, differences.length);
  for (const l of layout.leaves.slice(0, leaves)) {
    editCell(r, l, n, 0, x, 0);
  }
  assert.equal(r.left(), 0);
  return layout.leaves.slice(0, leaves).map((l) => showLeaf(l, n, 0, x, 0));
}

test("the differences of lists are read", () => {
  assert.deepEqual(edited(LISTS, example("message-lists"), example("differences-lists"), 3), [
    items([2, 2], [3, 7], [4, 4], [5, 5], [6, 6], [9, -1]),
    new Map([["arrow", 19], ["stone", 9]]),
    new Set([8]),
  ]);
});

test("the differences of steps and rotations are read", () => {
  const [x, heat, q] = edited(STEPS, example("message-steps"), example("differences-steps"), 3);
  assert.deepEqual([x, heat], [-99, 36.5]);
  const unit = Math.sqrt(2 * 511 * 511);
  assert.deepEqual((q as number[]).slice(0, 3), [361, -361, -74].map((s) => Math.fround(s / unit)));
});

test("inputs are written", () => {
  const w = new InputWriter(messageOf("{Turn int8; Aim float32 quant=1/64; Fire bool}"));
  const packet = w.write([
    { step: 301, input: w.encode({ Turn: 1, Aim: 1, Fire: true }), view: { from: 290, to: 291, alpha: 32 } },
    { step: 300, input: w.encode({ Turn: 1, Aim: 0.75, Fire: true }), view: { from: 289, to: 290, alpha: 16 } },
    { step: 299, input: w.encode({ Turn: 1, Aim: 0.5 }), view: { from: 288, to: 289, alpha: 16 } },
    { step: 297, input: w.encode({ Turn: -1 }) },
  ]);
  assert.equal(Buffer.from(packet).toString("hex"), Buffer.from(example("inputs")).toString("hex"));
});
