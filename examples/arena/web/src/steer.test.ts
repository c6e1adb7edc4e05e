import { readFileSync } from "node:fs";
import { test } from "node:test";

import { runVectors } from "@netloop/client/testing";

import { schema } from "../schema.js";
import { shot, steer } from "./steer.js";

const vectors = JSON.parse(readFileSync(`${process.env.NETLOOP_ROOT}/examples/arena/web/testdata/ships.json`, "utf8"));

test("a ship is steered here as on the server, and fires the same shots", () =>
  runVectors(schema, "ship", vectors, (ship, wish, frame, spawn) => {
    if (steer(ship, wish, frame)) spawn("shot", shot(ship, frame));
  }));
