import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { fly, type Flight } from "./steer.js";

/** exact rounds numbers to float32, which JSON writes with fewer digits. */
const exact = (_: string, v: unknown): unknown => (typeof v === "number" ? Math.fround(v) : v);

const flights = JSON.parse(readFileSync(`${process.env.NETLOOP_ROOT}/examples/arena/web/testdata/flights.json`, "utf8"), exact) as { Was: Flight; Is: Flight }[];

test("a ship flies here as it does on the server, to the last bit", () => {
  assert.ok(flights.length >= 500);
  for (const { Was, Is } of flights) {
    const ship = { ...Was };
    fly(ship, Math.fround(1 / 60));
    assert.deepEqual(ship, Is);
  }
});
