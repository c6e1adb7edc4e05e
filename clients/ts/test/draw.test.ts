// The drawn state between two versions, and the corrections of predictions by the server's state.

import assert from "node:assert/strict";
import { test } from "node:test";
import { check, fieldsOf, zeroOf } from "../src/adapt.js";
import { encodeMessage, type MessageType } from "../src/codec/index.js";
import { InputRing, viewOf } from "../src/input/ring.js";
import { InputWriter } from "../src/codec/inputs.js";
import { Prediction, type PredictionHost } from "../src/predict/prediction.js";
import { Predictor } from "../src/predict/predictor.js";
import { ServerTime } from "../src/clock/server.js";
import { netGraph } from "../src/netgraph.js";
import { protobufCodecs } from "../src/protobuf.js";
import { Entity } from "../src/view/entity.js";
import { ClassObjects } from "../src/view/classes.js";
import { Leaves } from "../src/view/leaves.js";
import { schema } from "./everything.js";
import { classOf, messageOf } from "../src/codec/text.js";

const SHIP = "{X float32 quant=1/256; Yaw float32; Hull uint8; Rot quat bits=12; Name string max=16}";

/** The interpolated state at the part t of the way between two states. */
function between(known: ConstructorParameters<typeof Leaves>[1], a: object, b: object, t: number): any {
  const of = classOf(SHIP);
  const leaves = new Leaves(of, known);
  const [from, to, out] = [a, b, a].map((s) => {
    const flat = new Float64Array(leaves.size);
    leaves.flatten({ Rot: [0, 0, 0, 1], ...s }, flat);
    return flat;
  }) as [Float64Array, Float64Array, Float64Array];
  leaves.between(out, from, to, t);
  const state = of.create();
  of.unflatten(out, state);
  leaves.copyOthers(state, a);
  return state;
}

const near = (got: number, want: number) => assert.ok(Math.abs(got - want) < 1e-6, `${got}, want ${want}`);

test("numbers are drawn by their ways, and what steps steps", () => {
  const known = { fields: {}, lerp: { Yaw: "degrees" } } as const;
  const a = { X: 10, Yaw: 350, Hull: 3, Name: "a" };
  const b = { X: 20, Yaw: 10, Hull: 1, Name: "b" };
  const half = between(known, a, b, 0.75);
  near(half.X, 17.5);
  near(half.Yaw, 5);
  assert.deepEqual([half.Hull, half.Name], [3, "a"]);
  assert.deepEqual([between(known, a, b, 0).X, between(known, a, b, 1).X, between(known, a, b, 1).Hull], [10, 20, 1]);
  near(between(known, a, b, 1.5).X, 25);
  near(between({ fields: {}, lerp: { Hull: "linear", X: "none" } }, a, b, 0.6).Hull, 2);
  near(between({ fields: {}, lerp: { X: "none" } }, a, b, 0.6).X, 10);
  near(between({ fields: {}, lerp: { Yaw: "angle" } }, { ...a, Yaw: 6.2 }, { ...b, Yaw: 0.1 }, 0.5).Yaw, (6.3 + 2 * Math.PI) / 2 - 2 * Math.PI + 0.0);
});

test("between two states of which a leaf teleports nothing is drawn", () => {
  const known = { fields: {}, teleport: ["Hull"] };
  assert.equal(between(known, { X: 0, Hull: 1 }, { X: 100, Hull: 2 }, 0.9).X, 0);
  assert.equal(between(known, { X: 0, Hull: 1 }, { X: 100, Hull: 2 }, 1).X, 100);
  assert.equal(between(known, { X: 0, Hull: 1 }, { X: 100, Hull: 1 }, 0.5).X, 50);
});

test("rotations go the short way, and one that was never set is none", () => {
  const s = Math.SQRT1_2;
  const turned = between(undefined, { Rot: [0, 0, 0, 1] }, { Rot: [0, 0, s, s] }, 0.5).Rot;
  near(turned[2], Math.sin(Math.PI / 8));
  near(turned[3], Math.cos(Math.PI / 8));
  const other = between(undefined, { Rot: [0, 0, 0, 1] }, { Rot: [0, 0, -s, -s] }, 0.5).Rot;
  near(other[2], Math.sin(Math.PI / 8));
  assert.deepEqual(between(undefined, { Rot: [0, 0, 0, 0] }, { Rot: [0, 0, s, s] }, 0.5).Rot, [0, 0, 0, 0]);
});

test("the schema of a page is matched by names, and what does not fit is named", () => {
  const served = (text: string) => ({ classes: [classOf(text)], methods: [], input: undefined });
  const name = classOf("{A bool}").name;
  const own = (fields: Record<string, string>) => ({ name: "x", major: 1, minor: 0, classes: { [name]: { fields } }, methods: {} });
  check(own({ X: "string max=9", New: "int8", In: "{A [3]{B int8}; C bool}" }), served("{Old bool; X string max=16; In {A [3]{B int8; More bool}}}"));
  const bad: [Record<string, string>, string, RegExp][] = [
    [{ X: "int8" }, "{X int16}", /\.X is int8 in the page and int16 on the server/],
    [{ X: "{A {B bool}}" }, "{X {A {B int8}}}", /\.X\.A\.B is bool in the page/],
    [{ X: "[]int8 max=3" }, "{X []int16 max=3}", /\.X is /],
    [{ X: "[2]int8" }, "{X [3]int8}", /\.X is \[2\]int8 in the page/],
  ];
  for (const [fields, text, want] of bad) assert.throws(() => check(own(fields), served(text)), want);
  assert.deepEqual([...fieldsOf("{A {B bool; C int8}; D string max=3;}")], [["A", "{B bool; C int8}"], ["D", "string max=3"]]);
  for (const [text, want] of [["{A bool; B [2]int8}", { A: false, B: [0, 0] }], ["map[int8]bool max=3", new Map()], ["uint64", 0n], ["[2]byte", new Uint8Array(2)]] as const) {
    assert.deepEqual(zeroOf(text), want);
  }
});

test("protobuf messages of the schema travel as protobuf has them", () => {
  const value = schema.protobuf!["google.protobuf.Value"]!;
  const message = { structValue: { fields: [{ key: "a", value: { numberValue: 1.5 } }, { key: "ü", value: { listValue: { values: [{ boolValue: true }, { nullValue: 0 }] } } }] } };
  const bytes = value.encode(message);
  const hex = [...bytes].map((b) => b.toString(16).padStart(2, "0")).join("");
  assert.equal(hex, "2a220a0e0a0161120911000000000000f83f0a100a02c3bc120a32080a0220010a020800");
  const again: any = value.decode(bytes);
  assert.deepEqual(again.structValue.fields[0].value.numberValue, 1.5);
  assert.deepEqual(again.structValue.fields[1].value.listValue.values[1].nullValue, 0);
  const time = schema.protobuf!["google.protobuf.Timestamp"]!;
  assert.deepEqual(time.decode(time.encode({ seconds: -5n, nanos: 7 })), { seconds: -5n, nanos: 7 });
  assert.deepEqual(time.decode(new Uint8Array(0)), { seconds: 0n, nanos: 0 });
  assert.throws(() => time.decode(Uint8Array.of(8)));
  const kinds = protobufCodecs({ m: ["sint32", "sint64", "fixed32", "sfixed64", "float", "bytes", "bool", "uint32"].map((kind, i) => ({ no: i + 1, name: kind, kind, repeated: i === 0, optional: false, of: "" })) });
  const all = { sint32: [-1, 2], sint64: -3n, fixed32: 4, sfixed64: -5n, float: 1.5, bytes: Uint8Array.of(1, 2), bool: true, uint32: 4294967295 };
  assert.deepEqual(kinds.m!.decode(kinds.m!.encode(all)), all);
  assert.deepEqual(kinds.m!.decode(Uint8Array.of(0x0a, 2, 1, 4)).sint32, [-1, 2], "packed");
  assert.equal(value.decode(value.encode({ stringValue: "\ufeffa" })).stringValue, "\ufeffa", "a leading U+FEFF stays");
});

test("inputs are repeated until the server has them, and none is made twice", () => {
  const type = messageOf("{Turn int8}") as MessageType;
  const ring = new InputRing(new InputWriter(type), 128, 16);
  for (let step = 1; step <= 5; step++) {
    assert.ok(ring.wants(step));
    ring.add(step, { Turn: step }, undefined);
  }
  assert.ok(!ring.wants(5) && ring.wants(6) && ring.wants(100_000));
  const older = (p: Uint8Array | undefined) => p && p[2]!;
  assert.equal(older(ring.packet()), 4);
  ring.confirm(2, 0b1, 0);
  assert.equal(older(ring.packet()), 2, "what it has at the end is left out");
  ring.confirm(5, 0b11, 0);
  assert.equal(ring.packet(), undefined);
  ring.ran(4);
  ring.add(6, { Turn: 6 }, undefined);
  assert.equal(older(ring.packet()), 0);
  assert.deepEqual([ring.at(6), ring.at(7)], [{ Turn: 6 }, undefined]);
  ring.setBack(5);
  assert.ok(ring.wants(6) && !ring.wants(5) && ring.at(6) === undefined && !ring.confirm(5, 0, 0));
  ring.add(6, { Turn: 7 }, undefined);
  assert.equal(older(ring.packet()), 1, "the server discards what waits, so it is sent again");
  assert.deepEqual(viewOf({ from: 8, to: 10, alpha: 0.51 }), { from: 8, to: 10, alpha: 32 });
  assert.deepEqual(viewOf({ from: 8, to: 10, alpha: 1.2 }), { from: 10, to: 10, alpha: 0 });
});

/** A predicted ship, and a state of the server that the test makes up. */
function predicting() {
  const of = classOf("{X float32 quant=1/256; Hull uint8}");
  const state: Record<string, any> = { X: 0, Hull: 3 };
  const nv: any = { id: 1, owner: 7, shown: true, tick: 100, lifetime: 1, state, data: undefined };
  const entity = new Entity({ name: "ship", leaves: new Leaves(of, undefined) }, nv, undefined, 0);
  const time = new ServerTime();
  const frame: any = { fixedStep: 0 };
  const s: PredictionHost = {
    id: 7, time,
    inputOf: (step) => ({ input: { by: step % 2 } }),
    frameOf: (step) => ((frame.fixedStep = step), frame),
    owned: () => [entity],
    addLocal: () => assert.fail(), removeLocal: () => {}, takeOver: () => {},
    guard: (_, fn) => fn(),
  };
  const prediction = new Prediction(s);
  const fly = (st: any, input: any) => (st.X = Math.fround(st.X + input.by));
  prediction.classes.push(new Predictor("ship", of.fields, fly, 100, undefined, undefined));
  const word = (tick: number, x: number, whole = true) => {
    Object.assign(state, { X: x });
    nv.tick = tick;
    prediction.update({ kind: "applied", tick, behind: 0, whole, base: tick - 1 } as any, whole);
  };
  return { prediction, entity, word, state };
}

test("a prediction that the server confirms stays, and one that it does not is run again", () => {
  const { prediction, entity, word } = predicting();
  word(100, 0);
  prediction.reconcile(0);
  for (let step = 101; step <= 110; step++) prediction.step(step);
  const d = prediction.of(entity)!;
  assert.equal(d.live.X, 5);
  word(104, 2);
  prediction.reconcile(16);
  assert.deepEqual([prediction.mispredicted, prediction.replayed, d.live.X], [0, 0, 5]);
  word(106, 50);
  prediction.reconcile(32);
  assert.deepEqual([prediction.mispredicted, prediction.replayed, d.live.X], [1, 4, 52]);
  assert.deepEqual(prediction.classes[0]!.wrong, { X: 1 });
  prediction.step(111);
  assert.equal(d.live.X, 53);
});

test("mispredictions count since the join, and on the page since the first one", () => {
  const { prediction, word } = predicting();
  word(100, 0);
  prediction.reconcile(0);
  for (let step = 101; step <= 110; step++) prediction.step(step);
  word(106, 50);
  prediction.reconcile(32);
  assert.deepEqual([prediction.wrong, prediction.mispredicted], [1, 1]);
  prediction.reset();
  assert.deepEqual([prediction.wrong, prediction.mispredicted], [0, 1]);
});

test("a correction is drawn little by little", () => {
  const { prediction, entity, word } = predicting();
  word(100, 0);
  prediction.reconcile(0);
  for (let step = 101; step <= 110; step++) prediction.step(step);
  const d = prediction.of(entity)!;
  const out = new Float64Array(2);
  const x = (now: number) => (d.draw(out, prediction.last, 0, now), out[0]!);
  const before = x(0);
  word(106, 103);
  prediction.reconcile(10);
  near(x(10), before);
  near(x(60), before + 50);
  near(x(110), before + 100);
});

test("states that are equal encode to equal bytes, which is what predictions are compared by", () => {
  const type = classOf(SHIP).fields;
  const a = encodeMessage(type, { X: 1.0001, Yaw: 1, Hull: 1, Rot: [0, 0, 0, 1], Name: "x" });
  assert.deepEqual(encodeMessage(type, { X: 1, Yaw: 1, Hull: 1, Rot: [0, 0, 0, 2], Name: "x" }), a);
});

test("a step spawns in FixedUpdate, and when it runs again before it, and nobody else does", () => {
  const prediction = { running: 0, by: () => ({ born: "Born" }), spawn: (_by: unknown, _state: unknown, step: number) => step };
  const world: { prediction: unknown; fixedStep: number | undefined } = { prediction, fixedStep: undefined };
  const shots = new ClassObjects("shot", undefined, world as never);
  assert.throws(() => shots.spawn({}), /only allowed in FixedUpdate/);
  world.fixedStep = 7;
  assert.equal(shots.spawn({}), 7);
  world.fixedStep = undefined;
  prediction.running = 5;
  assert.equal(shots.spawn({}), 5);
});

test("the graph of a connection has its figures and draws nothing while it is hidden", () => {
  let texts: string[] = [];
  const context: any = { scale() {}, fillRect() {}, beginPath() {}, stroke() {}, lineTo: (_: number, y: number) => assert.ok(y <= 84 && y >= 22), fillText: (text: string) => texts.push(text) };
  const canvas: any = { style: {}, setAttribute() {}, remove() { this.gone = true; }, getContext: () => context, clientWidth: 344, clientHeight: 156 };
  const keys = new Set<(e: unknown) => void>();
  Object.assign(globalThis, {
    document: { createElement: () => canvas, body: { append() {} } }, devicePixelRatio: 1, getComputedStyle: () => ({ color: "rgb(255, 255, 255)", fontFamily: "sans-serif" }),
    addEventListener: (_: string, fn: (e: unknown) => void) => keys.add(fn), removeEventListener: (_: string, fn: (e: unknown) => void) => keys.delete(fn),
  });
  let systems: ((f: { now: number }) => void)[] = [];
  const stats = { rttMs: 84.4, viewDelayMs: 118, ageMs: 62, lost: 1, inputsMissed: 3, mispredicted: 2, bytesIn: 0, bytesOut: 0, snapshotRate: 60 };
  let read = 0;
  const client: any = {
    on: (_: number, fn: (f: { now: number }) => void) => (systems.push(fn), () => (systems = systems.filter((s) => s !== fn))),
    get stats() { read++; return { ...stats }; }, mispredictions: () => ({ "ship.X": 2, "ship.VX": 5 }),
  };
  const graph = netGraph(client);
  assert.deepEqual([canvas.hidden, systems.length], [true, 0]);
  const press = (code: string) => { for (const fn of keys) fn({ code, repeat: false, preventDefault() {} }); };
  press("F4");
  assert.equal(systems.length, 0);
  press("F3");
  for (let now = 0; now <= 2000; now += 10) {
    stats.bytesIn += 100; // 80 kbit/s
    stats.bytesOut += 25;
    texts = [];
    for (const fn of systems) fn({ now });
  }
  assert.equal(read, 41, "a column has 50 ms");
  assert.deepEqual(texts, [
    "150 ms", "round trip 84 ms", "delay 118 ms", "age 62 ms", "lost 1", "inputs missed 3", "mispredicted 2",
    "in 80 kbit/s", "out 20 kbit/s", "60 snapshots/s", "ship.VX 5  ship.X 2",
  ]);
  Object.assign(stats, { ageMs: 60_000, rttMs: -1 });
  texts = [];
  for (const fn of systems) fn({ now: 3000 });
  assert.ok(texts.includes("2000 ms"), "the lines of a sleeping room have a scale");
  press("F3");
  assert.deepEqual([canvas.hidden, systems.length], [true, 0]);
  graph.toggle();
  graph.remove();
  assert.deepEqual([canvas.gone, systems.length, keys.size], [true, 0, 0]);
});
