// A client that moves to a room of another server.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, type ConnectInfo, type ConnectOptions } from "../src/api.js";
import { targetOf } from "../src/session/travel.js";
import { Kind } from "../src/wire/frames.js";
import { fields, Rig, say, settle, type Peer, type To } from "./rig.js";
import { tables } from "./tables.js";

const SECRET = { secret: "first", keepMs: 10_000 };
const OTHER: To[] = [
  { carrier: "quic", addr: "b:1" },
  { carrier: "webtransport", addr: "b:2", hashes: [new Uint8Array(32), new Uint8Array(32).fill(255)] },
  { carrier: "websocket", addr: "ws://b:3/path" },
];

const text = (b: unknown) => new TextDecoder().decode((b as Uint8Array | undefined) ?? new Uint8Array(0));

/** A client that plays and knows its secret, with its phases and log. */
async function playing(options: ConnectOptions = {}) {
  const rig = new Rig();
  const log: string[] = [];
  const client = await rig.play({ log: (line) => log.push(line), ...options }, SECRET, tables);
  const phases: string[] = [];
  client.onStatus((s) => phases.push(s.phase));
  return { rig, client, phases, log, source: rig.peer };
}

/** Sends a message of the client, and returns those that a server has heard. */
function heard(peer: Peer): string[] {
  return peer.frames.filter((f) => f.kind === Kind.Message).map((f) => text((fields(f.body)[7] as Uint8Array).subarray(1)));
}

/** Steps until a condition holds. */
async function until(rig: Rig, done: () => boolean, frames = 1000): Promise<void> {
  for (let i = 0; i < frames && !done(); i++) {
    rig.step();
    await settle();
  }
  assert.ok(done(), String(done));
}

/** Sends the client to another server, and returns that server once the client has said hello. */
async function sent(rig: Rig, ticket = "t@b"): Promise<Peer> {
  const { peer } = rig;
  peer.send(say.moved(ticket, OTHER));
  await until(rig, () => rig.peer !== peer && rig.peer.hear().last(Kind.Hello) !== undefined);
  return rig.peer;
}

test("a client plays until another server is reached, and says hello there once it has left", async () => {
  const { rig, client, phases, source } = await playing({ token: "login", room: "lobby" });
  let reached = () => {};
  const dialed: ConnectInfo[] = [];
  rig.reach = (info) => (dialed.push(info), new Promise((resolve) => (reached = resolve)));
  const told: string[] = [];
  client.handle("tell", (m: any) => told.push(m.Text));
  const call = client.call("ask", { Text: "?" }).catch((e: { code: number }) => e.code);
  source.send(say.moved("t@b", OTHER));
  for (let i = 0; i < 10; i++) {
    source.send(say.message({ method: 1, payload: Uint8Array.of(1, 0x30 + i) }));
    rig.step();
    await settle();
  }
  assert.deepEqual([client.status.phase, told.join(""), rig.peers.length, source.last(Kind.Close)], ["playing", "0123456789", 1, undefined]);
  assert.deepEqual(
    dialed.map((i) => [i.address, i.certificateHashes, i.webSocket]),
    [["b:2", ["A".repeat(43) + "=", "/".repeat(42) + "8="], "ws://b:3/path"]],
  );
  reached();
  await settle();
  rig.peer.hear();
  assert.deepEqual([rig.peers.length, rig.peer.frames, client.status.phase], [2, [], "playing"], "connected, and no hello yet");
  rig.step();
  await settle();
  const hello = rig.peer.hear().last(Kind.Hello)!;
  assert.deepEqual({ ...source.hear().last(Kind.Close) }, { 1: Code.Moved });
  assert.deepEqual([text(hello[13]), text(hello[7]), text(hello[9]), hello[16], hello[17]], ["t@b", "", "", undefined, 1]);
  assert.equal(fields(hello[11] as Uint8Array)[1], undefined, "the seat's secret is for the server of the seat");
  await rig.greet({ id: 3, instance: "two", secret: "second", keepMs: 10_000, resumed: true }, tables); // It resumes nothing.
  rig.step();
  assert.deepEqual([client.id, client.room, client.status.phase], [7, "lobby", "moving"], "until the game has admitted it, it has its old seat");
  rig.peer.send(say.accepted());
  await settle();
  rig.peer.state(301, 1);
  rig.step();
  assert.equal(await call, Code.Moved);
  assert.deepEqual(phases, ["moving", "loading", "playing"]);
  assert.deepEqual([client.id, client.stats.drops, client.stats.resumes, client.info.address, rig.errors], [3, 0, 0, "b:2", []]);
  rig.reach = async (info) => void dialed.push(info);
  rig.peer.client.cut();
  await until(rig, () => rig.peers.length === 3);
  const again = rig.peer.hear().last(Kind.Hello)!;
  assert.deepEqual([dialed.at(-1)!.address, text(fields(again[11] as Uint8Array)[1]), again[13]], ["b:2", "second", undefined], "the new server is its home");
  await rig.greet({ id: 3, instance: "two", secret: "third", resumed: true }, tables);
  rig.step();
  rig.peer.send(say.accepted());
  rig.step();
  assert.deepEqual([client.id, client.status.phase, client.stats.resumes], [3, "playing", 1]);
});

test("a client whose move leads to no connection stays in its room", async () => {
  for (const reach of [() => Promise.reject(new Error("out of reach")), () => new Promise<void>(() => {})]) {
    const { rig, client, phases, log, source } = await playing();
    rig.reach = reach;
    source.send(say.moved("t@b", OTHER));
    for (let i = 0; i < 400; i++) {
      if (i % 60 === 0) source.state(301 + i, 2 + i / 60);
      rig.step();
      await settle();
    }
    assert.deepEqual([client.status.phase, phases, rig.peers.length, source.closed, source.last(Kind.Close)], ["playing", [], 1, undefined, undefined]);
    assert.match(log.join(), /move to another server failed: server (is unreachable|did not answer in time)/);
    rig.reach = async () => {};
    await sent(rig);
  }
});

test("a client that another server does not admit is back at its seat", async () => {
  const welcomed = (rig: Rig) => rig.greet({ id: 3, instance: "two", secret: "other", keepMs: 10_000 }, tables);
  const failures: Record<string, (rig: Rig, to: Peer) => Promise<unknown>> = {
    "refused for now": async (_, to) => to.send(say.refused(Code.Full, "8 of 8")),
    "refused for good": async (_, to) => to.send(say.refused(Code.Ticket, "unknown ticket")),
    dead: async (_, to) => to.client.cut(),
    silent: async (rig) => until(rig, () => rig.peers.length === 3, 5300 / 16),
    "dead before the welcome": async (_, to) => (to.send(say.tables(tables)), to.client.cut()),
    "dead before it admits": async (rig, to) => (await welcomed(rig), to.client.cut()),
    "refused by the game": async (rig, to) => (await welcomed(rig), to.send(say.close(Code.Refused, "not you"))),
    "not admitted in time": async (rig) => (await welcomed(rig), until(rig, () => rig.peers.length === 3, 5300 / 16)),
    "sent on and on": async (rig) => {
      for (let i = 0; i < 4; i++) {
        rig.peer.hear().send(say.refusedMove("u@c", OTHER));
        await settle();
      }
    },
    "another schema": async (_, to) => to.send(say.tables(new Uint8Array(1))),
  };
  for (const [name, fail] of Object.entries(failures)) {
    const { rig, client, phases, source } = await playing();
    client.send("tell", { Text: "before" });
    await fail(rig, await sent(rig));
    assert.ok(client.send("tell", { Text: "under way" }), name);
    await until(rig, () => rig.peer.info === rig.info, 60);
    assert.deepEqual([client.id, client.room], [7, "lobby"], `${name}: the old seat until then`);
    const hello = rig.peer.hear().last(Kind.Hello)!;
    assert.deepEqual([text(fields(hello[11] as Uint8Array)[1]), hello[13]], ["first", undefined], name);
    await rig.greet({ secret: "next", keepMs: 10_000, resumed: true }, tables);
    rig.step();
    rig.peer.send(say.accepted(1));
    rig.step();
    assert.deepEqual([client.id, client.status.phase, client.closed], [7, "playing", undefined], name);
    assert.deepEqual([client.stats.drops, client.stats.resumes, rig.errors], [1, 1, []], name);
    assert.deepEqual([phases[0], phases.at(-1), heard(source), heard(rig.peer)], ["moving", "playing", ["before"], ["under way"]], name);
    rig.step(100, 6);
    assert.ok(rig.peers.slice(1, -1).every((p) => p.hear().closed), `${name}: the other connection is closed`);
  }
});

test("the clock of another server is that of its welcome, however long its game takes", async () => {
  const { rig, client } = await playing();
  const to = await sent(rig);
  rig.clock.pass(1000);
  await rig.greet({ id: 3, instance: "two", server: 70_000 }, tables);
  const at = rig.clock.at;
  rig.step(16, 100);
  to.send(say.accepted());
  await settle();
  rig.step();
  assert.equal(client.id, 3);
  assert.ok(Math.abs(client.clock.serverTime - 70_000 - (rig.clock.at - at)) < 1, `${client.clock.serverTime}`);
});

test("a second move replaces the first", async () => {
  const { rig, client, source } = await playing();
  const reached: (() => void)[] = [];
  rig.reach = () => new Promise((resolve) => reached.push(resolve));
  for (const ticket of ["1@b", "2@b"]) {
    source.send(say.moved(ticket, OTHER));
    rig.step();
    await settle();
  }
  reached[0]!();
  rig.step();
  await settle();
  assert.deepEqual([client.status.phase, rig.peers[1]!.hear().closed?.code], ["playing", Code.Left]);
  reached[1]!();
  await until(rig, () => rig.peers.length === 3 && rig.peer.hear().last(Kind.Hello) !== undefined);
  assert.equal(text(rig.peer.last(Kind.Hello)![13]), "2@b");
});

test("a client whose room ends during its move continues to the other server, and a removed one ends", async () => {
  for (const [end, goesOn] of [[(p: Peer) => p.client.cut(), true], [(p: Peer) => p.send(say.close(Code.Closing, "")), true], [(p: Peer) => p.send(say.close(Code.Kicked, "")), false]] as const) {
    const { rig, client, source } = await playing();
    let reached = () => {};
    rig.reach = () => new Promise((resolve) => (reached = resolve));
    source.send(say.moved("t@b", OTHER));
    rig.step();
    await settle();
    end(source);
    rig.step(16, 5);
    reached();
    await settle();
    rig.step();
    await settle();
    const other = rig.peers[1]!.hear();
    assert.deepEqual([client.status.phase, other.closed?.code], goesOn ? ["moving", undefined] : ["closed", Code.Left]);
    assert.equal(text({ ...other.last(Kind.Hello) }[13]), goesOn ? "t@b" : "");
  }
});

test("a client that closes during its move leaves no connection open", async () => {
  for (const steps of [0, 1]) {
    const { rig, client, source } = await playing();
    source.send(say.moved("t@b", OTHER));
    rig.step();
    await settle();
    for (let i = 0; i < steps; i++) rig.step(), await settle();
    client.close();
    await settle();
    rig.clock.pass(1000);
    await settle();
    assert.equal(rig.peer.hear().closed?.code, Code.Left, `${steps} steps`);
    assert.ok(source.hear().closed);
  }
});

test("a server may send a client elsewhere before it admits it, but not for ever", async () => {
  for (const hops of [1, 3, 4]) {
    const rig = new Rig();
    const dialled = rig.dial({ token: "login", room: "far" }).catch((e: { code: number; message: string }) => e);
    for (let i = 0; i < hops; i++) {
      await settle();
      rig.peer.hear().send(say.refusedMove(`${i}@b`, [{ carrier: "webtransport", addr: `b:${i}` }]));
    }
    await settle();
    if (hops === 4) {
      assert.deepEqual([rig.peers.length, { ...(await dialled) as { code: number } }.code], [4, Code.Moved]);
      continue;
    }
    const hello = rig.peer.hear().last(Kind.Hello)!;
    assert.deepEqual([rig.peer.info.address, text(hello[13]), text(hello[9])], [`b:${hops - 1}`, `${hops - 1}@b`, ""]);
    assert.equal(text(rig.peers[0]!.last(Kind.Hello)![9]), "login", "for the first server, which knows the player by it");
    await rig.greet({ secret: "first", keepMs: 10_000 }, tables);
    rig.peer.send(say.accepted());
    rig.client = (await dialled) as typeof rig.client;
    rig.peer.client.cut();
    await until(rig, () => rig.peers.length === hops + 2);
    assert.equal(rig.peer.info.address, `b:${hops - 1}`);
    assert.ok(rig.peers.slice(0, hops).every((p) => p.hear().closed), "the servers before are left");
  }
});

test("a seat that is joined anew and then resumed counts as no resume", async () => {
  const { rig, client } = await playing();
  rig.peer.client.cut();
  await until(rig, () => rig.peers.length === 2);
  await rig.greet({ id: 9, secret: "second", keepMs: 10_000 }, tables);
  rig.step();
  rig.peer.client.cut();
  await until(rig, () => rig.peers.length === 3);
  await rig.greet({ id: 9, secret: "third", keepMs: 10_000, resumed: true }, tables);
  rig.step();
  rig.peer.send(say.accepted());
  rig.step();
  assert.deepEqual([client.id, client.status.phase, client.stats.drops, client.stats.resumes], [9, "loading", 1, 0]);
});

test("a client without a way back ends if another server does not admit it", async () => {
  const end = { code: Code.Full, text: "move to another server failed: 8 of 8" };
  const rig = new Rig();
  rig.client = await rig.play({ reconnect: false }, {}, tables);
  (await sent(rig)).send(say.refused(Code.Full, "8 of 8"));
  await settle();
  assert.deepEqual(rig.client.closed, end, "it has no secret");

  const { rig: left, client, source } = await playing();
  source.send(say.moved("t@b", OTHER), say.close(Code.Closing, "restart"));
  await until(left, () => left.peers.length === 2 && left.peer.hear().last(Kind.Hello) !== undefined);
  assert.equal(client.status.phase, "moving");
  left.peer.send(say.refused(Code.Full, "8 of 8"));
  await settle();
  assert.deepEqual(client.closed, end, "the server before has ended");
});

test("a move within the server replaces one to another server", async () => {
  const { rig, client, source } = await playing();
  rig.reach = () => new Promise(() => {});
  source.send(say.moved("t@b", OTHER), say.moved("u@a"));
  rig.step();
  await settle();
  const hello = source.hear().last(Kind.Hello)!;
  assert.deepEqual([text(hello[13]), client.status.phase, rig.peers.length], ["u@a", "moving", 1]);
});

test("a page uses the addresses that browsers can", () => {
  const here = { address: "a:1", path: "/netloop", webSocket: "wss://a/netloop", refused: { code: 8, text: "full" }, schema: { name: "s", major: 1, minor: 0 } };
  const to = (...addresses: [string, string][]) => targetOf({ ticket: "t", to: addresses.map(([carrier, addr]) => ({ carrier, addr, hashes: [] })) }, here).info;
  assert.deepEqual(to(["quic", "b:1"]), { ...here, address: "", certificateHashes: undefined, webSocket: undefined, refused: undefined });
  assert.deepEqual(to(["webtransport", "b:1"], ["webtransport", "b:2"]), { ...here, address: "b:1", certificateHashes: [], webSocket: undefined, refused: undefined });
  const url = to(["webtransport", "https://[::1]:1/own"]);
  assert.deepEqual([url.address, url.path], ["[::1]:1", "/own"]);
  assert.equal(to(["websocket", "b:1"]).webSocket, "wss://b:1/netloop", "with the scheme of the server before");
});
