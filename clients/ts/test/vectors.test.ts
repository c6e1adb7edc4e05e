// A page's copy of a step function runs the server's cases, which netlooptest has written.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Frame } from "../src/api.js";
import type { Schema } from "../src/schema.js";
import { runVectors, type Vectors } from "../src/testing.js";

const cases = (): Vectors => JSON.parse(readFileSync(`${process.env.NETLOOP_ROOT}/clients/ts/test/vectors.json`, "utf8"));

const schema: Schema<any> = {
  name: "factory", major: 1, minor: 0, methods: {}, input: "{By float32 quant=1/4;Load bool;}",
  classes: {
    robot: {
      predicted: true,
      fields: {
        X: "float32 quant=1/8", Heat: "float64 quant=1/10 steps=-200:900", Far: "float64", Exact: "float32", Limb: "{Joint float32; Grip float32}",
        Legs: "[2]{X int16}", Rot: "quat bits=10", Turns: "uint8", Total: "int64", Step: "uint64", Ready: "instant", Slow: "instant",
        Name: "string max=16", Key: "bytes max=256", Hash: "[3]byte", Mate: "ref", Bag: "[]{ID uint16; At [2]float32; Used instant} max=4",
        Path: "[]int16 max=4", Ammo: "map[string max=128]int32 max=4", Seen: "set[uint16] max=64",
      },
    },
  },
};

const f = Math.fround;

/** As step of netlooptest/vectors_test.go. */
function stepRobot(r: any, lever: { By: number; Load: boolean }, frame: Frame): void {
  r.X = f(r.X + lever.By);
  r.Heat += 0.07;
  r.Far *= 1.5;
  r.Exact = f(r.Exact + f(f(frame.fixedDeltaMs / 1000) * lever.By));
  r.Limb.Grip = f(r.Limb.Grip + f(0.1));
  r.Legs[1].X -= 30000;
  r.Turns += 100;
  r.Total -= 1n << 40n;
  r.Step = BigInt(frame.fixedStep * 2 ** 20 + frame.tick);
  if (!lever.Load || frame.left(r.Ready) > 0) return;
  r.Ready = frame.in(50);
  r.Slow = frame.inScaled(1000);
  r.Name += "é";
  r.Bag.push({ ID: r.Bag.length, At: [r.X, 1], Used: frame.in((1 - r.Bag.length) * 600) });
  r.Path.push(r.Bag.length);
  r.Ammo.set(`${r.Bag.length}`, (r.Ammo.get(`${r.Bag.length}`) ?? 0) + 1);
  r.Seen.add(r.Bag.length);
}

test("a step function with every kind of field computes the same as the server's", () => {
  runVectors(schema, "robot", cases(), stepRobot);
  for (const kind of ["Ready", "Slow", "Bag", "Ammo", "Seen", "Legs"]) {
    const all = cases().cases.map(({ want }) => JSON.stringify(Object.entries(want).filter(([name]) => name.startsWith(kind))));
    assert.ok(new Set(all).size > 2, `${kind} changes`);
  }
});

test("cases that differ are named with their fields, and below a quantum nothing differs", () => {
  const fails = (step: typeof stepRobot, text: RegExp) => assert.throws(() => runVectors(schema, "robot", cases(), step), text);
  fails((r, lever, frame) => {
    stepRobot(r, lever, frame);
    if (frame.fixedStep === 3) r.X += 0.25;
  }, /^Error: 1 of 40 cases of class "robot" differ from the server's:\n {2}case 3: X is -?[\d.]+, the server has -?[\d.]+\n    state \{.*\n    input \{"By"/);
  fails((r, lever, frame) => (stepRobot(r, lever, frame), (r.Total += 1n), void r.Seen.add(60)), /^Error: 40 of 40 [^]*case 1: Total is -\d+n, the server has -\d+n; Seen is \[/);
  fails(() => { throw new Error("no idea"); }, /case 1: Error: no idea/);
  runVectors(schema, "robot", cases(), (r, lever, frame) => (stepRobot(r, lever, frame), void (r.X += 0.001)));
});

test("cases of another class, of other fields, or none are refused", () => {
  const with_ = (more: object) => ({ ...cases(), ...more });
  assert.throws(() => runVectors(schema, "robot", with_({ class: "ship" }), stepRobot), /of class "ship", not of "robot"/);
  assert.throws(() => runVectors(schema, "robot", with_({ fields: "{X float32 quant=1/4}" }), stepRobot), /have the fields \{X float32 quant=1\/4\}, and the schema of the page/);
  assert.throws(() => runVectors(schema, "robot", with_({ cases: [] }), stepRobot), /there are no cases/);
});

test("spawned objects are compared with their classes, order and states", () => {
  const all = cases();
  all.cases[0]!.spawns = [{ class: "robot", state: all.cases[0]!.want }];
  const run = (spawned: (r: any) => any[]): void =>
    runVectors(schema, "robot", all, (r, lever, frame, spawn) => {
      stepRobot(r as any, lever as any, frame);
      if (frame.fixedStep === 1) for (const one of spawned(r)) spawn("robot", one);
    });
  run((r) => [structuredClone(r)]);
  assert.throws(() => run(() => []), /case 1: it spawns nothing, the server robot/);
  assert.throws(() => run((r) => [r, r]), /case 1: it spawns robot, robot, the server robot/);
  assert.throws(() => run((r) => [{ ...structuredClone(r), Turns: 9 }]), /case 1: of the spawned robot Turns is 9, the server has/);
});
