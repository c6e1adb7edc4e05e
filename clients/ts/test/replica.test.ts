// The cases of the replica without an example in docs/WIRE.md.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Replica } from "../src/state/replica.js";
import { Acks } from "../src/state/acks.js";
import { widen } from "../src/state/header.js";
import { Packet } from "./packets.js";
import { Random } from "./random.js";
import { memoryOf, versionsOf } from "./stored.js";
import { classOf } from "../src/codec/text.js";

const c = classOf("{X float32 quant=1/8; Name string max=2000; Path []{X int8; Y int8} max=64; Pos [2]float32; Q quat bits=9; On bool}");
const replica = (limits = {}) => new Replica({ classes: [c], methods: [], input: undefined }, 10, limits);
const kinds = (r: Replica) => r.changes().map((e) => `${e.kind} ${Math.floor(e.object.id / 2 ** 32)}`);

test("changes are told once, and what came and went is left out", () => {
  const r = replica();
  assert.equal(r.apply(new Packet(10, 1).full(0, c, { X: 1 }).full(5, c, {}).bytes()).why, "");
  assert.deepEqual(kinds(r), ["spawned 0", "spawned 5"]);
  assert.deepEqual(kinds(r), []);
  const gone = r.get(1)!;
  r.apply(new Packet(11, 2).despawn(0).full(1, c, {}).bytes());
  r.apply(new Packet(12, 3).full(0, c, { X: 3 }, 12, 2).despawn(1).despawn(5).bytes());
  assert.deepEqual(kinds(r), ["despawned 0", "spawned 0", "despawned 5"]);
  assert.deepEqual([gone.shown, gone.state.X, r.get(1), r.get(2)?.state.X], [false, 1, undefined, 3]);
  assert.deepEqual([...r.objects(0)].map((o) => o.id), [2]);
});

test("a state is one object, which is brought up to date where it has changed", () => {
  const r = replica();
  r.apply(new Packet(10, 1).full(0, c, { X: 1, Name: "ann", Path: [{ X: 1, Y: 2 }], Pos: [1, 2] }).bytes());
  const o = r.get(1)!;
  const { state } = o;
  const own = o.copy();
  const [path, pos] = [state.Path, state.Pos];
  r.apply(new Packet(11, 2).full(0, c, { X: 2, Name: "ann", Path: [{ X: 1, Y: 3 }], Pos: [1, 5] }, 10).bytes());
  assert.equal(o.state, state);
  assert.deepEqual([state.X, state.Path, state.Pos, own.X, own.Path], [2, [{ X: 1, Y: 3 }], [1, 5], 1, [{ X: 1, Y: 2 }]]);
  assert.notEqual(state.Path, path);
  assert.equal(state.Pos, pos);
});

test("numbers go into the flat layout and back", () => {
  const r = replica();
  r.apply(new Packet(10, 1).full(0, c, { X: 1.5, Pos: [3, -4], Q: [0, 0, 0, 1], On: true }).bytes());
  const flat = new Float64Array(c.flatSize);
  r.get(1)!.flat(flat);
  assert.deepEqual(
    c.flat.map((l) => [l.path.join("."), l.kind, flat[l.at]]),
    [["X", "float", 1.5], ["Pos.0", "float", 3], ["Pos.1", "float", -4], ["Q", "quat", 0], ["On", "bool", 1]],
  );
  const state = c.create();
  c.unflatten(flat, state);
  assert.deepEqual(state, { X: 1.5, Name: "", Path: [], Pos: [3, -4], Q: [0, 0, 0, 1], On: true });
});

test("packets of one snapshot come in any order, once, and earlier ones not at all", () => {
  const r = replica();
  const parts = [0, 1, 2].map((i) => new Packet(10, i + 1, i, 3).full(i, c, {}).bytes());
  assert.deepEqual([r.apply(parts[2]).kind, r.apply(parts[0]).whole], ["applied", false]);
  assert.equal(r.apply(parts[2]).kind, "repeated");
  assert.deepEqual(r.acknowledgement(), { newest: 3, runs: [1, 1, 1] });
  assert.match(r.apply(new Packet(10, 9, 1, 4).bytes()).why, /inconsistent packets/);
  const last = r.apply(parts[1]);
  assert.deepEqual([last.whole, last.index, last.count, last.base], [true, 1, 3, 0]);
  r.apply(new Packet(12, 5).bytes());
  assert.equal(r.apply(new Packet(11, 4).full(7, c, {}).bytes()).kind, "stale");
  assert.deepEqual(r.acknowledgement(), { newest: 5, runs: [1, 1, 3] });
});

test("a packet that breaks a rule changes nothing", () => {
  const r = replica();
  r.apply(new Packet(10, 1).full(0, c, { X: 1 }).bytes());
  const digest = r.digest();
  const good = new Packet(11, 2).full(0, c, { X: 9, Name: "new" }).full(1, c, {}).bytes();
  for (let n = 0; n < good.length; n++) {
    assert.equal(r.apply(good.subarray(0, n)).kind, "refused", `${n} bytes`);
    assert.deepEqual([r.digest(), r.tick, r.changes().length > 1], [digest, 10, false]);
  }
  assert.equal(r.memory, memoryOf(r));
  assert.equal(r.apply(good).kind, "applied");
});

test("memory is counted, and what goes beyond the limit is refused", () => {
  const limit = 100_000;
  const r = replica({ memory: limit });
  let refused = 0;
  for (let tick = 10; tick < 400; tick++) {
    const text = `${tick}`.padEnd(tick % 3 === 0 ? 900 : 20, "x");
    const packet = new Packet(tick, tick).full(tick % 7, c, { Name: text, Path: [{ X: 1, Y: tick % 100 }] }, 10);
    const got = r.apply(packet.full(30 + (tick % 40), c, {}).bytes());
    refused += got.kind === "refused" ? 1 : 0;
    assert.ok(r.memory <= limit, `${r.memory}`);
    assert.equal(r.memory, memoryOf(r), `tick ${tick}`);
  }
  assert.ok(refused > 0 && versionsOf(r) > 50, `${refused} refused, ${versionsOf(r)} versions`);
  r.reset(10);
  assert.deepEqual([r.memory, versionsOf(r), r.digest()], [0, 0, 0xcbf29ce484222325n]);
  assert.equal(r.apply(new Packet(10, 1).full(0, c, {}).bytes()).kind, "applied");
});

test("another connection numbers packets and records anew, and keeps what is shown", () => {
  const r = replica();
  r.apply(new Packet(10, 40).full(0, c, { X: 1 }).bytes());
  r.reconnect();
  assert.deepEqual([r.acknowledgement(), r.recordsApplied, r.get(1)?.state.X], [undefined, 0, 1]);
  r.apply(new Packet(11, 1).bytes());
  assert.deepEqual(r.acknowledgement(), { newest: 1, runs: [1] });
});

test("acknowledgements are those of the last 1 024 packets, in at most 32 ranges", () => {
  const random = new Random(1);
  for (let round = 0; round < 20; round++) {
    const acks = new Acks();
    const seen = new Set<number>();
    let newest = 0;
    for (let i = 0; i < 300; i++) {
      const id = Math.max(1, newest + 3 - random.below(10) + (random.below(60) === 0 ? random.below(3000) : 0));
      acks.add(id);
      seen.add(id);
      newest = Math.max(newest, id);
      const { newest: from, runs } = acks.next()!;
      const want: number[] = [];
      for (let at = newest, is = true; at > Math.max(0, newest - 1024) && want.length < 64; is = !is) {
        let n = 0;
        for (; at - n > Math.max(0, newest - 1024) && seen.has(at - n) === is; n++);
        want.push(n);
        at -= n;
      }
      want.length = Math.min(want.length - (want.length % 2 === 0 ? 1 : 0), 63);
      assert.deepEqual([from, runs], [newest, want]);
    }
  }
});

test("ticks are widened to the nearest", () => {
  assert.deepEqual(
    [[5, 3], [2 ** 32 - 1, 3], [0x10, 2 ** 32 - 5], [7, 2 ** 40 + 9], [0xffff_ffff, 2 ** 40]].map(([low, near]) => widen(low, near)),
    [5, 2 ** 32 - 1, 2 ** 32 + 0x10, 2 ** 40 + 7, 2 ** 40 - 1],
  );
});
