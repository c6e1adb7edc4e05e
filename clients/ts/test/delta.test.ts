// A value that was written as a delta, from any baseline, is read unchanged. Inputs are encoded in this way.

import assert from "node:assert/strict";
import { test } from "node:test";
import { DeltaReader, type Version } from "../src/codec/delta.js";
import { Form, type Leaf } from "../src/codec/layout.js";
import { InputWriter } from "../src/codec/inputs.js";
import { cellsOf, encodeMessage } from "../src/codec/message.js";
import { DeltaWriter } from "../src/codec/writedelta.js";
import { writeCells } from "../src/codec/value.js";
import { BitReader } from "../src/wire/bits.js";
import { BitWriter, lenSize, riceSize } from "../src/wire/bitwriter.js";
import { ByteWriter } from "../src/wire/bytes.js";
import { Random } from "./random.js";
import { classOf, messageOf } from "../src/codec/text.js";

const FIELDS =
  "{A int8; B uint32; C int64; D uint64; E float32; F float32; G float64; H float32 quant=1/256; I float32 quant=1/8 steps=-800:800; " +
  "J float64 quant=1/100; Q quat bits=10; R quat bits=20; S bool; T ref; U instant; V string max=9; W []int16 max=5; X proto a.B max=9; Y [3]byte}";

/** A value of a leaf, often near the value before. */
function near(l: Leaf, was: unknown, random: Random): unknown {
  const step = random.below(7) - 3;
  const far = random.below(5) === 0;
  switch (l.form) {
    case Form.Bool:
      return random.below(2) === 1;
    case Form.Int: {
      const at = far ? l.low + random.below(l.high - l.low) : Math.min(Math.max((was as number) + step, l.low), l.high);
      return l.den === 0 ? Math.floor(at) : ((was as number) * l.den) / l.num + step > l.high ? 0 : (was as number) + (step * l.num) / l.den;
    }
    case Form.Wide:
      return l.unsigned ? BigInt.asUintN(64, far ? BigInt(random.below(2 ** 53)) << 11n : (was as bigint) + BigInt(step)) : far ? -(1n << 63n) : BigInt.asIntN(64, (was as bigint) + BigInt(step));
    case Form.Float32:
    case Form.Float64:
      return far ? [0, -0, Infinity, 1e-40, -1e30, 3.5][random.below(6)] : (was as number) + step / 8;
    case Form.Quat:
      return random.below(9) === 0 ? [0, 0, 0, 0] : (was as number[]).map((c) => c + (random.next() - 0.5) / (far ? 1 : 50));
    case Form.Ref:
      return far ? 0 : random.below(2 ** 48);
    case Form.Text:
      return "abcdefg".slice(random.below(7));
    case Form.List:
      return Array.from({ length: random.below(5) }, () => random.below(99));
    case Form.Proto:
      return far ? null : random.bytes(random.below(9));
    default:
      return random.bytes(l.max);
  }
}

test("a delta is read as it was written", () => {
  const c = classOf(FIELDS);
  const random = new Random(3);
  const [w, r] = [new BitWriter(), new BitReader()];
  const [writer, reader] = [new DeltaWriter(w), new DeltaReader(r)];
  const state = c.create();
  const history: Version[] = [];
  for (let i = 0; i < 1500; i++) {
    for (const l of c.layout.leaves) {
      if (random.below(3) > 0) state[l.key] = near(l, state[l.key], random);
    }
    const to: Version = { tick: 0, owner: 0, ...cellsOf(c.layout, encodeMessage(c.fields, state)) };
    const base = history.at(-1) ?? c.zero;
    const older = random.below(4) > 0 ? history.at(-2) : undefined;
    const [span, ahead] = [1 + random.below(6), 1 + random.below(6)];
    w.reset();
    writer.write(c.layout, to, base, older, span, ahead);
    const got: Version = { tick: 0, owner: 0, n: base.n.slice(), x: base.x.slice() };
    const bytes = w.done();
    r.open(bytes, 0, 8 * bytes.length - w.length);
    reader.read(c.layout, got, base, older, undefined, span, ahead);
    assert.equal(r.at, r.end, `delta ${i}`);
    const [a, b] = [new ByteWriter(), new ByteWriter()];
    writeCells(a, c.layout, to.n, 0, to.x, 0);
    writeCells(b, c.layout, got.n, 0, got.x, 0);
    assert.deepEqual(b.done(), a.done(), `delta ${i}`);
    history.push(to);
  }
});

test("numbers among bits are read as they were written, and take as long as is said", () => {
  const random = new Random(4);
  const [w, r] = [new BitWriter(), new BitReader()];
  for (let i = 0; i < 4000; i++) {
    const v = ((BigInt(random.below(2 ** 32)) << 32n) | BigInt(random.below(2 ** 32))) >> BigInt(random.below(65));
    const k = random.below(42) - 1;
    w.reset();
    w.bits(0, random.below(8));
    const begin = w.length;
    if (k < 0) w.len(v);
    else w.rice(v, k);
    assert.equal(w.length - begin, k < 0 ? lenSize(v) : riceSize(v, k), `${v} as ${k}`);
    r.open(w.done(), 0, 0);
    r.bits(begin);
    const got = k < 0 ? r.len() : r.rice(k);
    assert.equal(got < 2 ** 53 ? BigInt(got) : r.wide(), v, `${v} as ${k}`);
    assert.equal(r.at, w.length);
  }
});

test("inputs have limits, and a packet leaves out what does not fit", () => {
  const w = new InputWriter(messageOf("{Note bytes max=200; N int64}"));
  assert.throws(() => w.encode({ Note: new Uint8Array(60) }), /48/);
  assert.throws(() => w.encode({ N: 0.5 }), /N cannot be 0.5/);
  const random = new Random(5);
  const inputs = Array.from({ length: 20 }, (_, i) => ({ step: 90 - i, input: w.encode({ Note: random.bytes(44) }) }));
  const [few, all] = [w.write(inputs.slice(0, 1)), w.write(inputs)];
  assert.ok(all.length <= 900 && all.length > 700 && few.length < 60, `${all.length} and ${few.length}`);
  const proto = new InputWriter(messageOf("proto a.Input"));
  const same = proto.encode(Uint8Array.of(1, 2, 3));
  const two = proto.write([{ step: 2, input: same }, { step: 1, input: same }]);
  assert.equal(two.length - proto.write([{ step: 2, input: same }]).length, 0); // two bits more: the same, and looked on
});
