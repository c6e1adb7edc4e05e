// A client that moves between rooms of one server: the server's clock stays known, and game time is
// that of the room.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "../src/api.js";
import { Kind } from "../src/wire/frames.js";
import { Walker, Writer } from "../src/wire/protobuf.js";
import { emptyPacket, fields, NS, Rig, say, settle } from "./rig.js";
import { tables } from "./tables.js";

const SECRET = { secret: "first", keepMs: 10_000 };
/** The server's clock minus the client's. */
const OFFSET = 4000;
const FRAME = 1000 / 60;

/** Steps frames, and answers time requests after a one-way delay in ms. */
function frames(rig: Rig, n: number, way = 0): void {
  const { peer } = rig;
  for (let i = 0; i < n; i++) {
    const heard = peer.datagrams.length;
    rig.step(FRAME);
    for (const d of peer.datagrams.slice(heard)) {
      const request = fields(d)[3];
      if (!(request instanceof Uint8Array)) continue;
      const t1 = fields(request)[1] as number;
      const t2 = Math.round((rig.clock.at + OFFSET + way) * NS);
      rig.clock.pass(2 * way);
      peer.datagram((w) => w.sized(4, new Writer().number(1, t1).number(2, t2).number(3, t2).done()), 1000 + peer.datagrams.length);
    }
  }
}

/** Whether inputs have reached the server since a datagram. */
function inputsLeft(rig: Rig, since: number): boolean {
  return rig.peer.datagrams.slice(since).some((d) => {
    const w = new Walker(d, Array(32).fill(3));
    while (w.next()) if (w.num === 8) return true;
    return false;
  });
}

/** Moves to a room with tick 5 due 100 ms ago. Returns the index of the first datagram to that room. */
async function move(rig: Rig): Promise<number> {
  const { peer } = rig;
  peer.send(say.moved("a@box"));
  rig.step(1);
  await settle();
  const since = peer.hear().datagrams.length;
  const now = rig.clock.at + OFFSET;
  peer.send(say.welcome({ id: 3, secret: "other", datagram: 5000, server: now, epoch: { tick: 5, at: now - 100 } }), say.accepted());
  await settle();
  return since;
}

test("in a younger room time, steps and inputs are those of the room, at once", async () => {
  const rig = new Rig();
  const client = await rig.play({}, { ...SECRET, epoch: { tick: 60_000, at: 5000 } }, tables);
  let newest = 0;
  client.inputs((f) => ((newest = f.fixedStep), { Turn: 1, Fire: false }));
  frames(rig, 120);
  assert.ok(client.clock.synced && client.clock.tick > 60_000);
  const since = await move(rig);
  frames(rig, 1);
  assert.ok(client.clock.synced, "the server's clock is known already");
  assert.ok(client.clock.tick >= 11 && client.clock.tick <= 13, `tick ${client.clock.tick}`);
  assert.ok(Math.abs(client.clock.gameTime - client.clock.tick * FRAME) < 2 * FRAME, `game time ${client.clock.gameTime}`);
  const soon = BigInt(Math.round((client.clock.gameTime + 500) * NS));
  assert.ok(Math.abs(client.clock.left(soon) - 500) < 1);
  assert.ok(Math.abs(client.clock.at(soon) - client.clock.gameTime - 500) < 1);
  assert.equal(client.clock.at(-1_500_000_001n), 1500, "an instant of scaled time");
  assert.ok(inputsLeft(rig, since), "the first frame makes an input");
  assert.ok(newest > client.clock.tick && newest <= client.clock.tick + 4, `input of step ${newest} at tick ${client.clock.tick}`);
  rig.peer.datagram((w) => w.sized(5, emptyPacket(13, 1)), 5000);
  frames(rig, 60);
  assert.ok(client.stats.leadMs < 60 && client.stats.leadJumps === 0, `a lead of ${client.stats.leadMs} ms`);
  assert.deepEqual([client.stats.appliedTick, client.status.phase, rig.errors], [13, "playing", []]);
});

test("after a move from a room with slow ticks inputs leave at the pace of the other room", async () => {
  const rig = new Rig();
  const client = await rig.play({}, { ...SECRET, rate: 1, epoch: { tick: 1, at: 5000 } }, tables);
  client.inputs(() => ({ Turn: 1, Fire: false }));
  frames(rig, 240);
  const since = await move(rig);
  frames(rig, 3);
  assert.ok(inputsLeft(rig, since));
});

test("in an older room time and inputs are those of the room, at once", async () => {
  const rig = new Rig();
  const client = await rig.play({}, { ...SECRET, epoch: { tick: 1, at: 5000 } }, tables);
  let newest = 0;
  client.inputs((f) => ((newest = f.fixedStep), { Turn: 1, Fire: false }));
  frames(rig, 120);
  rig.peer.send(say.moved("a@box"));
  rig.step(1);
  await settle();
  const since = rig.peer.hear().datagrams.length;
  const now = rig.clock.at + OFFSET;
  rig.peer.send(say.welcome({ id: 3, server: now, epoch: { tick: 70_000, at: now } }), say.accepted());
  await settle();
  frames(rig, 1);
  assert.ok(inputsLeft(rig, since) && newest > 70_000 && newest < 70_006, `input of step ${newest}`);
  assert.equal(client.stats.jumped, 0, "no step is left out");
});

test("a moving client whose server has crashed joins its last room again", async () => {
  const rig = new Rig();
  const client = await rig.play({}, SECRET, tables);
  rig.peer.send(say.moved("a@box"));
  rig.step(1);
  await settle();
  rig.peer.client.cut();
  const text = (b: unknown) => new TextDecoder().decode(b as Uint8Array | undefined);
  const hellos: string[][] = [];
  while (hellos.length < 2) {
    for (let i = 0; i < 300 && rig.peers.length < hellos.length + 2; i++) {
      rig.step();
      await settle();
    }
    const hello = rig.peer.hear().last(Kind.Hello)!;
    hellos.push([text(hello[7]), text(hello[13])]);
    if (hellos.length < 2) rig.peer.send(say.refused(Code.Ticket, "unknown"));
    await settle();
  }
  assert.deepEqual(hellos, [["lobby", "a@box"], ["lobby", ""]]);
  const now = rig.clock.at + OFFSET;
  await rig.greet({ id: 9, instance: "two", server: now, epoch: { tick: 5, at: now } }, tables);
  rig.peer.send(say.accepted());
  frames(rig, 1);
  assert.deepEqual([client.id, client.room, client.status.phase], [9, "lobby", "loading"]);
});

test("a newcomer to a room that another has replaced takes the time of the new one", async () => {
  const rig = new Rig();
  const client = await rig.play({}, { ...SECRET, epoch: { tick: 60_000, at: 5000 } }, tables);
  frames(rig, 60);
  rig.peer.client.cut();
  rig.step();
  for (let i = 0; i < 100 && rig.peers.length < 2; i++) {
    rig.step();
    await settle();
  }
  const now = rig.clock.at + OFFSET;
  await rig.greet({ id: 9, server: now, epoch: { tick: 5, at: now } }, tables);
  frames(rig, 1);
  assert.deepEqual([client.id, client.clock.synced], [9, true]);
  assert.ok(client.clock.tick <= 7, `tick ${client.clock.tick}`);
});

/** The input packets sent since a datagram: their newest step and their generation. */
function packetsLeft(rig: Rig, since: number): { newest: number; generation: number }[] {
  return rig.peer.datagrams.slice(since).flatMap((d) => {
    const packet = fields(d)[8];
    return packet instanceof Uint8Array ? [{ newest: packet[0]! | (packet[1]! << 8), generation: (packet[3]! >> 1) & 3 }] : [];
  });
}

test("after a stall of the server the steps are set back, and inputs of their own are made for them", async () => {
  const rig = new Rig();
  const client = await rig.play({}, { ...SECRET, epoch: { tick: 300, at: 5000 } }, tables);
  const asked: number[] = [];
  client.inputs((f) => (asked.push(f.fixedStep), { Turn: 1, Fire: false }));
  frames(rig, 240);
  const before = client.clock.tick;
  const lead = client.stats.leadMs;
  assert.deepEqual(packetsLeft(rig, 0).at(-1)!.generation, 0);
  const newest = asked.at(-1)!;
  // The server has left out a second: its tick of now is due a second later than before.
  rig.peer.send(say.epoch(before, rig.clock.at + OFFSET + 1000));
  asked.length = 0;
  const since = rig.peer.datagrams.length;
  frames(rig, 1);
  assert.deepEqual(asked, [], "in the frame of the news no step is due");
  frames(rig, 20);
  const left = packetsLeft(rig, since + 1);
  assert.ok(left.length > 5 && left.every((p) => p.generation === 1), JSON.stringify(left));
  assert.ok(asked.length >= 19 && asked[0]! > newest - 70 && asked[0]! < newest - 50, `${asked.length} from ${asked[0]}, after ${newest}`);
  assert.deepEqual(asked, asked.map((_, i) => asked[0]! + i), "one for each step");
  frames(rig, 60); // The drawn time does not advance meanwhile.
  assert.ok(Math.abs(client.stats.leadMs - lead) < 20, `a lead of ${client.stats.leadMs}, before ${lead}`);
});
