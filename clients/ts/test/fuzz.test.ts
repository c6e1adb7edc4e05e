// With any bytes no reader throws or hangs, and memory is within its limit.

import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeMessage, encodeMessage } from "../src/codec/message.js";
import { readSchema } from "../src/codec/schema.js";
import { Refusal } from "../src/wire/refusal.js";
import { Replica } from "../src/state/replica.js";
import { ByteWriter } from "../src/wire/bytes.js";
import { example } from "./page.js";
import { Random } from "./random.js";
import { memoryOf } from "./stored.js";
import { classOf, messageOf } from "../src/codec/text.js";

const POS = "{X float32 quant=1/256; Y float32 quant=1/256; Armed bool; Name string max=8}";
const RICH =
  "{Bag []{ID uint16; Names []string max=6 max=9; D float64} max=60000; By map[string max=9]{Q quat bits=10; Own set[ref] max=3} max=9; " +
  "Grid [3][2]int64; F float32; At instant; Mail proto a.B max=9; Tag [3]byte; Step float64 quant=1/100; Turn quat bits=20; R float32 quant=1/8 steps=-8:9}";
const PACKETS = ["state-full", "state-delta", "state-repeat", "state-despawn", "state-digest", "state-older"];
const LIMIT = 1 << 20;

function replica(fields: string): Replica {
  return new Replica({ classes: [classOf(fields)], methods: [], input: undefined }, 100, { memory: LIMIT });
}

test("damaged packets are applied or refused", () => {
  const random = new Random(7);
  const packets = PACKETS.map(example);
  const kinds: Record<string, number> = {};
  for (let round = 0; round < 600; round++) {
    const r = replica(POS);
    for (const packet of packets) {
      const got = r.apply(random.below(3) === 0 ? random.damage(packet) : packet);
      kinds[got.kind] = (kinds[got.kind] ?? 0) + 1;
    }
    assert.ok(r.memory <= LIMIT);
    assert.equal(r.memory, memoryOf(r));
    r.changes();
  }
  assert.ok(kinds.applied > 1000 && kinds.refused > 300, JSON.stringify(kinds));
});

test("random bits behind a sound header are applied or refused", () => {
  const random = new Random(8);
  const kinds: Record<string, number> = {};
  for (let round = 0; round < 60; round++) {
    const r = replica(RICH);
    for (let i = 1; i <= 60; i++) {
      const w = new ByteWriter();
      w.raw(Uint8Array.of(3, 32 * random.below(8), 0, 1));
      w.u32(100 + i);
      w.uvarint(i);
      const bits = random.bytes(1 + random.below(60));
      const sparse = random.below(3);
      w.raw(bits.map((b, k) => (sparse === 0 ? b & random.below(256) : sparse === 1 && k > 0 ? b | random.below(256) : b)));
      const got = r.apply(w.done());
      kinds[got.kind] = (kinds[got.kind] ?? 0) + 1;
      assert.ok(r.memory <= LIMIT);
    }
    assert.equal(r.memory, memoryOf(r));
    for (const o of r.objects(0)) assert.ok(o.state);
  }
  assert.ok(kinds.refused > 500 && kinds.applied > 0, JSON.stringify(kinds));
});

test("bytes that are no packet are refused, however many they are", () => {
  const r = replica(POS);
  for (const bytes of [new Uint8Array(0), new Uint8Array(40_000).fill(3), new Random(9).bytes(30_000)]) {
    assert.equal(r.apply(bytes).kind, "refused");
    assert.equal(r.applyLarge(bytes).kind, "refused");
  }
});

test("damaged messages are decoded or not", () => {
  const random = new Random(10);
  const type = messageOf(RICH);
  const whole = encodeMessage(type, {
    Bag: [{ ID: 7, Names: ["a", "bc"], D: 0.5 }, { ID: 9 }],
    By: new Map([["x", { Q: [0, 1, 0, 1], Own: new Set([2 ** 32 + 1]) }]]),
    Mail: Uint8Array.of(1, 2),
  });
  let decoded = 0;
  for (let round = 0; round < 3000; round++) {
    decoded += decodeMessage(type, round % 2 === 0 ? random.damage(whole) : random.bytes(random.below(80))) === undefined ? 0 : 1;
  }
  assert.ok(decoded > 20, `${decoded}`);
});

test("damaged tables are read or refused", () => {
  const random = new Random(11);
  const part = example("frame-schema-part").slice(-48);
  let read = 0;
  for (let round = 0; round < 3000; round++) {
    try {
      readSchema(random.damage(part));
      read++;
    } catch (e) {
      assert.ok(e instanceof Refusal, `${e}`);
    }
  }
  assert.ok(read > 20, `${read}`);
});

/** A protobuf field of bytes. */
function field(num: number, ...parts: Uint8Array[]): Uint8Array {
  const w = new ByteWriter();
  w.u8(num << 3 | 2);
  w.uvarint(parts.reduce((n, p) => n + p.length, 0));
  parts.forEach((p) => w.raw(p));
  return w.done();
}

function scalar(num: number, v: number): Uint8Array {
  const w = new ByteWriter();
  w.u8(num << 3);
  w.uvarint(v);
  return w.done();
}

test("tables that a few bytes make huge are refused", () => {
  const kind = (k: number, ...more: Uint8Array[]) => [scalar(1, k), ...more];
  for (const inner of [kind(1), kind(19)]) {
    let type = inner;
    for (let level = 0; level < 20; level++) {
      const list = kind(level % 2 === 0 && inner.length > 0 ? 17 : 18, scalar(2, 256), field(5, ...type));
      type = list;
    }
    const name = new TextEncoder().encode("a");
    const tables = field(1, field(1, name), field(2, field(1, name), field(3, ...type)));
    const began = performance.now();
    try {
      readSchema(tables);
    } catch (e) {
      assert.ok(e instanceof Refusal, `${e}`);
    }
    assert.ok(performance.now() - began < 30_000, "it takes long");
  }
});
