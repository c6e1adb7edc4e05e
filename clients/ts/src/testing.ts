// Tests that a page's copy of a step function computes the same as the server's: runVectors runs the
// cases that netlooptest.Vectors of a Go test has written.
//
//     import { runVectors } from "@netloop/client/testing";
//
//     test("a ship moves in the page as on the server", () => runVectors(schema, "ship", vectors, stepShip));

import type { Frame } from "./api.js";
import { Timeline } from "./clock/timeline.js";
import { decodeMessage, encodeMessage } from "./codec/message.js";
import type { Message } from "./codec/schema.js";
import { Kind, type Type } from "./codec/tables.js";
import { messageOf, typeOf } from "./codec/text.js";
import { CurrentFrame } from "./frame.js";
import { differences } from "./predict/predictor.js";
import type { Schema, Shape } from "./schema.js";
import { same } from "./wire/bytes.js";

/** The file of netlooptest.Vectors, as JSON.parse returns it. */
export interface Vectors {
  class: string;
  fields: string;
  rate: number[];
  fixedRate: number[];
  cases: { step: number; state?: object; input: object; want: object; spawns?: { class: string; state: object }[] }[];
}

const SHOWN = 5;

/**
 * Runs the cases of a class, and throws an Error that lists the cases and fields in which the step
 * function differs from the server's. It compares states as the wire carries them: a difference
 * below a field's quantum is none. The step calls spawn for each object that its page spawns, if
 * netlooptest.SpawnVectors has written the cases. Protobuf messages are not supported, neither in
 * states nor in inputs.
 */
export function runVectors<G extends Shape, K extends keyof G["classes"] & string>(
  schema: Schema<G>,
  name: K,
  vectors: Vectors,
  step: (
    state: G["classes"][K],
    input: G["input"],
    frame: Frame,
    spawn: <C extends keyof G["classes"] & string>(name: C, state: G["classes"][C]) => void,
  ) => void,
): void {
  if (vectors.class !== name) throw new Error(`the cases are of class "${vectors.class}", not of "${name}"`);
  if (!(vectors.cases?.length > 0)) throw new Error("there are no cases: netlooptest.Vectors writes them");
  const fields = Object.entries(schema.classes[name].fields).map(([field, text]) => `${field} ${text};`).join("");
  const type = messageOf(`{${fields}}`);
  if (type.text !== messageOf(vectors.fields).text) throw new Error(`the cases have the fields ${vectors.fields}, and the schema of the page {${fields}}: write both anew`);
  const input = typeOf(schema.input ?? "{}");
  const [rate, fixed] = [vectors.rate, vectors.fixedRate].map(([num, den]) => ({ num: num!, den: den! }));
  const line = new Timeline(rate!, fixed!);
  const wrong: string[] = [];
  let count = 0;
  let before: object | undefined;
  for (const one of vectors.cases) {
    const start = one.state ?? before ?? {};
    before = one.want;
    const state = read(typeOf(`{${fields}}`), start);
    const move = read(input, one.input);
    let found: string;
    try {
      const spawned: [string, unknown][] = [];
      step(state as G["classes"][K], move as G["input"], frameOf(line, one.step), (of, s) => spawned.push([of, s]));
      found = compare(type, state, read(typeOf(`{${fields}}`), one.want)) || compareSpawns(schema, spawned, one.spawns ?? []);
    } catch (error) {
      found = String(error);
    }
    if (!found) continue;
    if (++count <= SHOWN) wrong.push(`case ${one.step}: ${found}\n    state ${JSON.stringify(start)}\n    input ${JSON.stringify(one.input)}`);
  }
  if (count > 0) throw new Error(`${count} of ${vectors.cases.length} cases of class "${name}" differ from the server's:\n  ${wrong.join("\n  ")}`);
}

/** The frame of a fixed step. */
function frameOf(line: Timeline, step: number): Frame {
  const tick = line.stepTick(step);
  const gameTime = line.gameTime(tick);
  return Object.assign(new CurrentFrame(), {
    tick, gameTime, scaledTime: gameTime, fixedStep: step, fixedDeltaMs: line.stepMs, deltaMs: line.stepMs, now: gameTime, stage: 30,
  });
}

/** The fields in which two states differ on the wire, with their values; "": none. */
function compare(type: Message, got: unknown, want: unknown): string {
  const [a, b] = [encodeMessage(type, got, true), encodeMessage(type, want, true)];
  if (same(a, b)) return "";
  const all: string[] = [];
  const [is, should] = [decodeMessage(type, a), decodeMessage(type, b)];
  differences(is, should, "", (path) => all.push(`${path} is ${show(at(is, path))}, the server has ${show(at(should, path))}`));
  return all.join("; ");
}

/** The first difference of the spawned objects; "": none. */
function compareSpawns(schema: Schema<any>, got: [string, unknown][], want: { class: string; state: object }[]): string {
  const names = (all: string[]): string => all.join(", ") || "nothing";
  const [is, should] = [names(got.map(([of]) => of)), names(want.map((one) => one.class))];
  if (is !== should) return `it spawns ${is}, the server ${should}`;
  for (const [i, [of, state]] of got.entries()) {
    const text = `{${Object.entries(schema.classes[of]!.fields).map(([field, kind]) => `${field} ${kind};`).join("")}}`;
    const found = compare(messageOf(text), state, read(typeOf(text), want[i]!.state));
    if (found) return `of the spawned ${of} ${found}`;
  }
  return "";
}

const at = (v: any, path: string): unknown => path.split(".").reduce((o, key) => o?.[key], v);
const show = (v: unknown): string => (typeof v === "bigint" ? `${v}n` : typeof v === "object" ? JSON.stringify(v instanceof Map || v instanceof Set ? [...v] : v) : String(v));

/** A state or an input, from JSON with its leaves in the order of the type. */
function read(type: Type, json: object): unknown {
  const leaves = Object.values(json).values();
  const v = valueOf(type, () => leaves.next().value);
  if (!leaves.next().done) throw new Error("the cases have more fields than the schema of the page: write both anew");
  return v;
}

function valueOf(type: Type, next: () => any): unknown {
  const element = type.element!;
  switch (type.kind) {
    case Kind.Struct:
      return Object.fromEntries(type.fields.map((f) => [f.name, valueOf(f.type, next)]));
    case Kind.Array:
      return Array.from({ length: type.max }, () => valueOf(element, next));
    case Kind.Slice:
      return next().map((v: any) => elementOf(element, v));
    case Kind.Map: {
      const entries = next() as any[];
      const key = element.fields[0]!.type;
      if (element.fields.length === 1) return new Set(entries.map((v) => elementOf(key, v)));
      return new Map(entries.map((e) => Object.values(read(element, e) as object)) as [unknown, unknown][]);
    }
    case Kind.Proto:
      throw new Error("the cases have a protobuf message, and they support none: use plain fields");
    default:
      return leafOf(type.kind, next());
  }
}

/** An element of a list: only a struct or an array has several leaves. */
function elementOf(type: Type, json: any): unknown {
  return type.kind === Kind.Struct || type.kind === Kind.Array ? read(type, json) : valueOf(type, () => json);
}

function leafOf(kind: Kind, json: any): unknown {
  switch (kind) {
    case Kind.Int64:
    case Kind.Uint64:
    case Kind.Instant:
      return BigInt(json);
    case Kind.Float32:
    case Kind.Range32:
      return Math.fround(Number(json));
    case Kind.Float64:
    case Kind.Range64:
      return Number(json);
    case Kind.Quat:
      return json.map((v: unknown) => Math.fround(Number(v)));
    case Kind.Ref: {
      const [slot, generation] = (json ?? "0.0").split(".");
      return Number((BigInt(slot) << 32n) | BigInt(generation));
    }
    case Kind.Bytes:
    case Kind.ByteArray:
      return Uint8Array.from(atob(json), (c) => c.charCodeAt(0));
    default:
      return json;
  }
}
