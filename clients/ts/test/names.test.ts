// The error for a mistyped name contains the right one.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConnectOptions } from "../src/api.js";
import { OPTIONS } from "../src/connect.js";
import { fieldsKnown, known } from "../src/names.js";
import { Rig } from "./rig.js";
import { tables } from "./tables.js";

const schema: any = {
  name: "wire", major: 3, minor: 0, input: "{Turn int8; Fire bool}",
  classes: { ship: { fields: { X: "float32 quant=1/256" }, predicted: true }, rock: { fields: {} } },
  methods: { tell: { stages: [50], message: "{Text string max=128}" }, ask: { stages: [50], message: "{Text string max=128}", answer: "{Text string max=128}" } },
};

test("a name that is none is answered with the nearest, or with all that there are", () => {
  assert.throws(() => known("class", "plyer", ["table", "player"]), /^Error: unknown class "plyer": did you mean "player"\?$/);
  assert.throws(() => known("class", "SHIP", ["ship"]), /did you mean "ship"\?/);
  assert.throws(() => known("class", "zzz", ["ship", "rock"]), /unknown class "zzz", only ship, rock$/);
  assert.throws(() => known("class", "zzz", []), /unknown class "zzz"$/);
  const type = "{At {X int8; Y int8}; All []{N int8} max=3; Any map[int8]bool max=3}";
  fieldsKnown(type, { At: { X: 1 }, All: [{ N: 1 }, {}], Any: new Map() }, "go");
  fieldsKnown(type, undefined, "go");
  assert.throws(() => fieldsKnown(type, { at: {} }, "go"), /unknown field of go "at": did you mean "At"\?/);
  assert.throws(() => fieldsKnown(type, { At: { Z: 1 } }, "go"), /unknown field of go "Z"/);
  assert.throws(() => fieldsKnown(type, { All: [{ N: 1 }, { M: 1 }] }, "go"), /unknown field of go "M": did you mean "N"/);
});

test("each function of a page refuses a name that is wrong, with and without a schema", async () => {
  for (const own of [schema, undefined]) {
    const rig = new Rig();
    const client = await rig.play({ schema: own }, {}, tables);
    assert.throws(() => client.class("shp"), /unknown class "shp": did you mean "ship"\?/);
    assert.throws(() => client.send("tel", {}), /unknown method "tel": did you mean "tell"\?/);
    assert.throws(() => client.handle("tll", () => {}), /unknown method "tll": did you mean "tell"\?/);
    assert.throws(() => client.send("tell", { Txt: "a" }), /unknown field of tell "Txt": did you mean "Text"\?/);
    assert.throws(() => client.call("ask", { text: "a" }), /unknown field of ask "text": did you mean "Text"\?/);
    assert.ok(client.send("tell", { Text: "a" }));
    client.inputs(() => ({ turn: 1 }));
    client.class("ship").predict(() => {});
    if (own) assert.throws(() => client.class("rock").predict(() => {}), /predict rock: declare the class with netloop\.Predicted\(\)/);
  }
  await assert.rejects(new Rig().dial({ rooom: "a" } as never), /unknown option of connect "rooom": did you mean "room"\?/);
});

test("a message that the room's game does not handle is not sent, and counted", async () => {
  for (const [handles, sent] of [[[], true], [[0], false], [[2], false], [[1], true], [[0, 1], false]] as const) {
    const log: string[] = [];
    const rig = new Rig();
    const client = await rig.play({ schema, log: (text) => log.push(text) }, { handles: Uint8Array.from(handles) }, tables);
    assert.equal(client.send("tell", { Text: "a" }), sent, String(handles));
    assert.equal(client.stats.unsent, sent ? 0 : 1);
    assert.equal(log.some((text) => /does not handle tell/.test(text)), !sent);
  }
});

// The compiler refuses this list if it lacks an option, or has one that is none.
const options: Record<keyof ConnectOptions, 0> = {
  url: 0, info: 0, schema: 0, room: 0, ticket: 0, spectate: 0, params: 0, token: 0, protobuf: 0, transports: 0, timeoutMs: 0, reconnect: 0,
  lostAfterMs: 0, signal: 0, pump: 0, simulate: 0, onError: 0, log: 0, platform: 0,
};

test("connect knows each of its options", () => {
  assert.deepEqual(OPTIONS.split(" "), Object.keys(options));
});
