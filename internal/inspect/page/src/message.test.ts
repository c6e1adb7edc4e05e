import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { protobufCodecs } from "../../../../clients/ts/src/protobuf.js";
import { Converter } from "./message.js";
import type { Forms } from "./types.js";

// Written by TestFormsDescribeEachKind of internal/schema.
const forms = JSON.parse(readFileSync(`${process.env["NETLOOP_ROOT"]}/internal/schema/testdata/forms.json`, "utf8")) as Forms;
const convert = new Converter(forms), [all, value] = forms.methods.map((m) => m.message) as [Forms["methods"][0]["message"], Forms["methods"][0]["message"]];

test("JSON becomes a value of the client, and JSON again", () => {
  const zero = convert.zero(all);
  assert.deepEqual(convert.show(all, convert.parse(all, zero)), zero);
  const full = {
    Yes: true, I8: -128, I16: 32767, I32: -5, I64: "-9223372036854775808", U8: 255, U16: 1, U32: 4294967295, U64: "18446744073709551615",
    F32: 0.5, F64: "-Infinity", Quant: 1.25, Turn: [0, 0, 1, 0], Object: "17.3", Text: "hé", Bytes: "AQI=", Fixed: "AQID",
    List: [{ A: 1, B: 2 }], Array: [1, 2], Map: [{ Key: "a", Value: 1 }], Set: [1, 2],
    Value: { structValue: { fields: [{ key: "k", value: { listValue: { values: [{ nullValue: "NULL_VALUE" }, { boolValue: false }] } } }] } },
    Inner: { Pos: { X: 1, Y: -2 } },
  };
  const v = convert.parse(all, full) as Record<string, unknown>;
  assert.equal(v["I64"], -(2n ** 63n));
  assert.equal(v["Object"], 17 * 2 ** 32 + 3);
  assert.deepEqual(v["Map"], new Map([["a", 1]]));
  assert.deepEqual(v["Bytes"], new Uint8Array([1, 2]));
  assert.deepEqual(convert.show(all, v), full);
  // The codec of the client takes the value of a protobuf message, and returns it.
  const codec = protobufCodecs(forms.messages)["google.protobuf.Value"]!;
  assert.deepEqual(convert.show(value, codec.decode(codec.encode(v["Value"]))), full.Value);
  assert.deepEqual(convert.zero(value, true), { nullValue: null, numberValue: null, stringValue: null, boolValue: null, structValue: null, listValue: null });
});

test("a wrong value is an error with the path of its field", () => {
  for (const [json, why] of [
    [{ I8: 128 }, /^I8 is no int8: 128$/],
    [{ U16: 1.5 }, /^U16 is no uint16/],
    [{ U64: -1 }, /^U64 is no uint64/],
    [{ I64: 1e17 }, /^I64 is no int64/],
    [{ F32: "1" }, /^F32 is no number: "1"$/],
    [{ Yes: 1 }, /^Yes is neither true nor false$/],
    [{ Text: 1 }, /^Text is no text/],
    [{ Bytes: "?" }, /^Bytes is no base64$/],
    [{ Object: "17" }, /^Object is no object such as "17.3"/],
    [{ Turn: [1] }, /^Turn has not four parts$/],
    [{ List: [{ A: 1 }, { A: "x" }] }, /^List.1.A is no int32: "x"$/],
    [{ List: 1 }, /^List is no list$/],
    [{ Array: [1] }, /^Array has not 2 elements$/],
    [{ Inner: { Pos: { Z: 1 } } }, /^Inner.Pos has no field "Z", only X, Y$/],
    [{ Value: { nullValue: "NONE" } }, /^Value.nullValue is none of NULL_VALUE: "NONE"$/],
    [{ Value: { boolValue: true, numberValue: 1 } }, /^Value can have only one of boolValue, numberValue$/],
    [[], /^the message is no object$/],
  ] as const) assert.throws(() => convert.parse(all, json), { message: why });
});
