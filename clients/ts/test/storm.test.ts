// With any bytes over any transport no step throws or hangs, no memory grows without a bound, and a client
// that receives invalid data ends with a code or continues.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Kind } from "../src/wire/frames.js";
import { frameOf } from "../src/wire/frames.js";
import { Random } from "./random.js";
import { emptyPacket, messageOf, Rig, say, settle } from "./rig.js";
import { tables } from "./tables.js";
import { example } from "./page.js";

const SECRET = { secret: "first", keepMs: 10_000 };
const FRAMES = [
  "frame-epoch", "frame-overload", "frame-time-scale", "frame-accepted", "frame-received", "frame-closing", "frame-state", "frame-message",
  "frame-reply", "frame-close", "frame-schema-part", "frame-welcome", "frame-refused",
];

test("damaged frames, datagrams and random bytes never throw out of a step", async () => {
  const random = new Random(17);
  const ends: Record<string, number> = {};
  let cases = 0;
  for (let round = 0; round < 40; round++) {
    const rig = new Rig();
    const client = await rig.play({ protobuf: {} }, SECRET, tables);
    client.handle("tell", () => {});
    client.inputs(() => ({ Turn: 1, Fire: true }));
    client.class("ship").interpolate().predict(() => {});
    for (let i = 0; i < 20 && !client.closed; i++, cases++) {
      const frame = example(FRAMES[random.below(FRAMES.length)]!);
      switch (random.below(20)) {
        case 0:
          rig.peer.send(random.damage(frame));
          break;
        case 1:
          rig.peer.send(frameOf(random.below(17) as Kind, random.bytes(random.below(40))));
          break;
        case 2:
        case 3:
        case 4:
          rig.peer.datagram((w) => w.raw(random.damage(example(["datagram-server", "datagram-input-status"][random.below(2)]!).subarray(2))));
          break;
        case 5:
        case 6:
        case 7:
        case 8:
          rig.peer.datagram((w) => w.sized(5, random.damage(emptyPacket(300 + i, 2 + i))), 100 + i * (1 + random.below(1e6)));
          break;
        default:
          rig.peer.datagram((w) => w.sized(6, random.damage(messageOf({ method: 1 + random.below(3), payload: random.bytes(9), tick: random.below(400) }))));
      }
      rig.step(random.below(3) === 0 ? 200 : 16);
    }
    const end = client.closed ? `closed ${client.closed.code}` : client.status.phase;
    ends[end] = (ends[end] ?? 0) + 1;
    assert.deepEqual(rig.errors, []);
    client.close();
  }
  assert.ok(cases > 300 && (ends["closed 9"] ?? 0) > 5, JSON.stringify(ends));
});

test("a greeting of any bytes ends with an error or goes on, and a client that comes back survives it", async () => {
  const random = new Random(18);
  for (let round = 0; round < 100; round++) {
    const rig = new Rig();
    const dialled = rig.dial({ timeoutMs: 1000 }).then(() => "in", (e: Error) => e.constructor.name);
    await settle();
    rig.peer.send(random.damage(say.tables(random.below(2) === 0 ? tables : random.damage(tables))));
    rig.peer.send(random.damage(say.welcome({})));
    await settle();
    rig.clock.pass(2000);
    assert.ok(["in", "NetloopError"].includes(await dialled));
  }
  for (let round = 0; round < 50; round++) {
    const rig = new Rig();
    const client = await rig.play({}, SECRET, tables);
    rig.peer.client.cut();
    for (let i = 0; i < 30 && !client.closed; i++) {
      rig.step();
      await settle();
      rig.peer.send(random.damage(say.tables(tables)), random.damage(say.welcome({ ...SECRET, id: random.below(2) === 0 ? 7 : 8, resumed: random.below(2) === 0 })));
      await settle();
    }
    client.close();
  }
});

test("a server that counts times, ticks and rates to the moon is believed as far as a client can bear it", async () => {
  const rig = new Rig();
  const client = await rig.play({}, SECRET, tables);
  client.class("ship").interpolate();
  let steps = 0;
  client.on(30, () => steps++);
  const epochs = [[2 ** 60, 1], [1, 2 ** 62], [2 ** 50, 2 ** 62], [300, 0]] as const;
  for (const [tick, ns] of epochs) {
    rig.peer.send(frameOf(Kind.Epoch, messageNumbers(tick, ns)));
    for (let i = 0; i < 5; i++) rig.step();
  }
  rig.peer.send(frameOf(Kind.Overload, messageNumbers(99, 2 ** 40)), frameOf(Kind.Closing, messageNumbers(2 ** 63)));
  for (let i = 0; i < 5; i++) rig.step();
  assert.ok(steps <= 8 * 25, `${steps} steps`);
  assert.equal(client.overload, 3);
  assert.ok(Object.values(client.stats).every((v) => typeof v !== "number" || !Number.isNaN(v)), JSON.stringify(client.stats));
});

/** A message of varints, numbered from 1. */
function messageNumbers(...numbers: number[]): Uint8Array {
  const out: number[] = [];
  numbers.forEach((n, i) => {
    out.push(8 * (i + 1));
    let v = BigInt(n);
    for (; v > 127n; v >>= 7n) out.push(Number(v & 127n) | 128);
    out.push(Number(v));
  });
  return Uint8Array.from(out);
}
