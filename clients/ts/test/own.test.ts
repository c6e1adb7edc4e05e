// An own object that is predicted: values that the wire cannot carry as they are, fields that become
// readable, and an owner that changes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ServerTime } from "../src/clock/server.js";
import { decodeMessage, encodeMessage, type MessageType } from "../src/codec/index.js";
import { Prediction, type PredictionHost } from "../src/predict/prediction.js";
import { Predictor } from "../src/predict/predictor.js";
import { ClassObjects } from "../src/view/classes.js";
import { Entity } from "../src/view/entity.js";
import { Playout } from "../src/view/playout.js";
import { Rig } from "./rig.js";
import { tables } from "./tables.js";
import { classOf, messageOf } from "../src/codec/text.js";

const near = (got: number, want: number) => assert.ok(Math.abs(got - want) < 1e-6, `${got}, want ${want}`);

/** An object of a class that the client owns and predicts. */
function owned(text: string, state: Record<string, any>, fly: (st: any, input: any) => void) {
  const of = classOf(text);
  const errors: unknown[] = [];
  const flat = (into: Float64Array) => of.flat.forEach((l) => (into[l.at] = Number(state[l.path[0]!])));
  const nv: any = { id: 1, owner: 7, shown: true, tick: 100, lifetime: 1, mask: undefined, state, flat };
  const frame: any = { now: 0, fraction: 0, fixedStep: 0 };
  const guard = (_: string, fn: () => void) => {
    try {
      fn();
    } catch (e) {
      errors.push(e);
    }
  };
  const s: PredictionHost = {
    id: 7, time: new ServerTime(), inputOf: () => ({ input: { by: 1 } }), frameOf: (step) => ((frame.fixedStep = step), frame),
    owned: () => (nv.owner === 7 ? [entity] : []), addLocal: () => assert.fail(), removeLocal: () => {}, takeOver: () => {}, guard,
  };
  const prediction = new Prediction(s);
  const playout = new Playout();
  const world: any = { id: 7, playout, prediction, frame, inputsMade: true, fixedStep: undefined, guard, later: () => {}, interpolated: () => {} };
  const ships = new ClassObjects("ship", undefined, world);
  ships.bind(of);
  ships.interpolate();
  const entity = new Entity(ships, nv, undefined, 0);
  ships.spawned(entity);
  prediction.classes.push(new Predictor("ship", of.fields, fly, 100, undefined, undefined));
  const word = (tick: number, more: object) => {
    Object.assign(state, more);
    nv.tick = tick;
    ships.changed(entity);
    prediction.update({ kind: "applied", tick, behind: 0, whole: true, base: tick - 1 } as any, true);
    prediction.reconcile(frame.now);
  };
  const look = (moment: { from: number; to: number; alpha: number }) => {
    playout.moment = moment;
    ships.advance(playout);
    return ships.view(entity);
  };
  return { prediction, entity, nv, errors, frame, word, look, live: () => prediction.of(entity)!.live as any };
}

test("a whole number that leaves its type wraps in a step, as on the server, and the rest of the step counts", () => {
  const o = owned("{X float32 quant=1/256; N uint8; I int16; W uint64}", { X: 0, N: 1, I: 32767, W: 0n }, (st, input) => {
    st.X += input.by;
    st.N -= input.by;
    st.I += input.by;
    st.W -= 1n;
  });
  o.word(100, {});
  for (let step = 101; step <= 102; step++) o.prediction.step(step);
  assert.deepEqual(o.live(), { X: 2, N: 255, I: -32767, W: 2n ** 64n - 2n });
  assert.deepEqual(o.errors, []);
  const type = messageOf("{N uint8}") as MessageType;
  assert.throws(() => encodeMessage(type, { N: 256 }), RangeError, "a message of the page is still refused");
  assert.throws(() => encodeMessage(type, { N: 0.5 }, true), RangeError);
});

test("text that is no UTF-8 is text that fits its field again", () => {
  const type = messageOf("{Name string max=4}") as MessageType;
  const bad = decodeMessage(type, Uint8Array.of(4, 0xff, 0xfe, 0x61, 0x80)) as { Name: string };
  assert.equal(bad.Name, "??a?");
  assert.ok(encodeMessage(type, bad));
  assert.equal((decodeMessage(type, Uint8Array.of(3, 0xef, 0xbf, 0xbd)) as any).Name, "\ufffd", "a replacement that was sent stays");
  assert.equal((decodeMessage(type, Uint8Array.of(4, 0xef, 0xbb, 0xbf, 0x61)) as any).Name, "\ufeffa", "a leading U+FEFF stays");
});

test("an own object that cannot be predicted is told, and costs nothing else", () => {
  const o = owned("{X float32; Name string max=4}", { X: 1, Name: "too long" }, () => {});
  o.word(100, {});
  o.prediction.step(101);
  assert.equal(o.prediction.of(o.entity), undefined);
  assert.match(String(o.errors[0]), /Name/);
  o.word(102, { Name: "ok" });
  assert.ok(o.prediction.of(o.entity), "it is predicted once it can be");
});

test("a field that becomes readable is drawn as it is, and never from zero", () => {
  const o = owned("{X float32; Y float32}", { X: 10, Y: 0 }, () => {});
  o.nv.owner = 3;
  o.nv.mask = Uint8Array.of(1, 0);
  o.word(101, { X: 10 });
  o.nv.mask = undefined;
  o.word(103, { X: 20, Y: 500 });
  const drawn = o.look({ from: 101, to: 103, alpha: 0.5 });
  assert.deepEqual({ ...drawn }, { X: 15, Y: 500 });
});

test("an object that is no longer the client's goes over to where others are drawn", () => {
  const o = owned("{X float32}", { X: 100 }, (st, input) => (st.X += input.by));
  o.word(100, {});
  for (let step = 101; step <= 110; step++) o.prediction.step(step);
  const before = o.look({ from: 100, to: 100, alpha: 0 }).X;
  assert.ok(before >= 109, `drawn at ${before}`);
  o.nv.owner = 3;
  o.word(101, { X: 101 });
  const at = (now: number) => ((o.frame.now = now), o.look({ from: 100, to: 101, alpha: 0.5 }).X);
  near(at(0), before);
  near(at(50), (before + 100.5) / 2);
  near(at(100), 100.5);
  near(at(200), 100.5);
});

test("a frame lacks no snapshot while nothing has changed for long", () => {
  const p = new Playout();
  p.period = p.tickMs = 16;
  let now = 0;
  let tick = 0;
  const frames = (n: number, still: boolean | undefined) => {
    for (let i = 0; i < n; i++, now += 16) {
      if (still !== undefined) p.add(++tick, tick * 16, now, still);
      p.frame(now, now + 16, 16);
    }
  };
  frames(60, false);
  frames(60, true);
  frames(60, undefined);
  assert.equal(p.starved, 0, "a room that sleeps sends none");
  p.add((tick += 60), tick * 16, now, false);
  frames(60, false);
  frames(60, undefined);
  assert.ok(p.starved > 20, "and one that is silent is missed");
});

test("after steps ran again, EarlyUpdate sees the frame's own tick", async () => {
  const rig = new Rig();
  const client = await rig.play({}, {}, tables);
  let was = 0;
  let seen = 0;
  client.on(20, (f) => (seen = f.tick));
  client.on(10, (f) => (was = f.tick));
  const impl = client as any;
  impl.prediction.reconcile = () => void impl.frameOf(3);
  rig.step();
  assert.ok(was > 3);
  assert.equal(seen, was);
});

test("a step that runs again has the scaled time that it had", async () => {
  const rig = new Rig();
  const client = await rig.play({}, { epoch: { tick: 300, at: 5000 } }, tables);
  const { time } = client as any;
  const at = (tick: number) => time.scaled(time.line.gameTime(tick));
  const t300 = time.line.gameTime(300);
  near(at(310), time.line.gameTime(310));
  time.rescale({ num: 1, den: 2, tick: 360, at: t300 + 1000 });
  time.rescale({ num: 0, den: 1, tick: 420, at: t300 + 1500 });
  near(at(330), t300 + 500);
  near(at(390), t300 + 1250);
  near(at(480), t300 + 1500);
  for (let i = 0; i < 100; i++) time.rescale({ num: 1, den: 1, tick: 500 + i, at: t300 + 2000 + i });
  assert.ok(time.scales.length <= 16);
});
