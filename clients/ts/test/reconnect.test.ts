// Reconnection after a broken connection, and the cost of a tab in the background.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, type ConnectOptions } from "../src/api.js";
import { Kind } from "../src/wire/frames.js";
import { emptyPacket, fields, Rig, say, settle } from "./rig.js";
import { tables } from "./tables.js";

const SECRET = { secret: "first", keepMs: 10_000 };

/** The number of a message's text, of all that the server has heard. */
function texts(rig: Rig): string[] {
  const told = rig.peers.flatMap((p) => p.frames).filter((f) => f.kind === Kind.Message);
  return told.map((f) => new TextDecoder().decode((fields(f.body)[7] as Uint8Array).subarray(1)));
}

/** A client that plays, knows the secret, and logs its phases. */
async function playing(options: ConnectOptions = {}) {
  const rig = new Rig();
  const client = await rig.play(options, SECRET, tables);
  const phases: string[] = [];
  client.onStatus((s) => phases.push(s.phase + (s.attempt ? ` ${s.attempt}` : "")));
  return { rig, client, phases };
}

/** Steps until the client dials again. */
async function redialled(rig: Rig, dials: number): Promise<void> {
  for (let i = 0; i < 1000 && rig.peers.length < dials; i++) {
    rig.step();
    await settle();
  }
  assert.equal(rig.peers.length, dials);
}

test("a client comes back with its secret, and no message is lost or comes twice", async () => {
  const { rig, client, phases } = await playing();
  const heard: string[] = [];
  client.handle("tell", (m: any) => heard.push(m.Text));
  client.send("tell", { Text: "1" });
  client.send("tell", { Text: "2" });
  rig.peer.hear().send(say.message({ method: 1, payload: Uint8Array.of(1, 0x61) }));
  rig.step();
  rig.peer.client.cut();
  rig.step();
  assert.equal(client.status.phase, "reconnecting");
  assert.ok(client.status.leftMs > 9000);
  assert.ok(client.send("tell", { Text: "3" }), "a reliable message waits");
  assert.ok(!client.send("shout", { Text: "x" }), "and another is lost");
  await redialled(rig, 2);
  const hello = rig.peer.hear().last(Kind.Hello)!;
  const resume = fields(hello[11] as Uint8Array);
  assert.deepEqual([new TextDecoder().decode(resume[1] as Uint8Array), resume[2], resume[3], resume[4]], ["first", 1, 1, 2]);
  assert.equal(new TextDecoder().decode(hello[7] as Uint8Array), "lobby", "the room is named as the welcome said");
  await rig.greet({ secret: "second", keepMs: 10_000, resumed: true }, tables);
  rig.step();
  assert.deepEqual(texts(rig), ["1", "2"], "nothing is sent before the server has said where it goes on");
  rig.peer.send(say.accepted(1), say.message({ method: 1, payload: Uint8Array.of(1, 0x62) }));
  rig.step();
  assert.deepEqual(texts(rig).slice(2), ["2", "3"]);
  assert.deepEqual(heard, ["a", "b"]);
  assert.deepEqual(phases, ["reconnecting 1", "playing"]);
  assert.deepEqual([client.id, client.stats.drops, client.stats.resumes], [7, 1, 1]);
});

test("an attempt that ends at its limit keeps the seat, which the server may have resumed, and one that the page ends leaves it", async () => {
  for (const closed of [false, true]) {
    const { rig, client } = await playing();
    rig.peer.client.cut();
    rig.step();
    await redialled(rig, 2);
    const attempt = rig.peer;
    attempt.hear();
    if (closed) client.close();
    else await redialled(rig, 3);
    attempt.hear();
    assert.equal(attempt.closed?.code, closed ? Code.Left : Code.Timeout);
  }
});

test("where the place is gone the client joins anew: objects despawn, calls fail, the id is another", async () => {
  const { rig, client, phases } = await playing();
  const call = client.call("ask", { Text: "?" }).catch((e: { code: number }) => e.code);
  rig.peer.client.cut();
  rig.step();
  await redialled(rig, 2);
  await rig.greet({ id: 8, instance: "two", secret: "other", keepMs: 5000 }, tables);
  rig.step();
  assert.equal(await call, Code.Lost);
  rig.peer.send(say.accepted());
  rig.step();
  assert.deepEqual([client.id, client.status.phase, client.stats.resumes], [8, "loading", 0]);
  rig.peer.state(10, 1);
  rig.step();
  assert.deepEqual(phases, ["reconnecting 1", "loading", "playing"]);
});

test("a client that is sent on to another room comes there by the ticket, as a newcomer", async () => {
  const { rig, client, phases } = await playing();
  rig.peer.send(say.close(Code.Moved, "a@box"));
  rig.step();
  await redialled(rig, 2);
  const hello = rig.peer.hear().last(Kind.Hello)!;
  assert.equal(new TextDecoder().decode(hello[13] as Uint8Array), "a@box");
  assert.equal(fields(hello[11] as Uint8Array)[1], undefined, "no secret of the room before");
  await rig.greet({ id: 3, secret: "other" }, tables);
  rig.step();
  rig.peer.send(say.accepted());
  rig.peer.state(301, 1);
  rig.step();
  assert.deepEqual([client.id, phases], [3, ["reconnecting 1", "loading", "playing"]]);
  rig.peer.client.cut();
  rig.step();
  await redialled(rig, 3);
  assert.equal(rig.peer.hear().last(Kind.Hello)![13], undefined, "the ticket is used up");
});

test("attempts without an answer come after longer pauses, at most 0.6 s and half of it, until they are given up", async () => {
  const { rig, client, phases } = await playing({ reconnect: { giveUpMs: 5000 } });
  rig.peer.client.cut();
  for (let dials = 1, i = 0; i < 400 && !client.closed; i++) {
    rig.step();
    await settle();
    if (rig.peers.length > dials) {
      dials = rig.peers.length;
      rig.peer.client.cut();
    }
  }
  assert.equal(client.closed?.code, Code.Lost);
  assert.match(client.closed.text, /10 attempts to reconnect in 50\d\d ms failed/);
  assert.deepEqual(phases.slice(0, 3), ["reconnecting 1", "reconnecting 2", "reconnecting 3"]);
});

test("a refusal that may pass is tried again, and any other is final", async () => {
  for (const [code, final] of [[Code.Full, false], [Code.Closing, false], [Code.Replaced, true], [Code.Unauthenticated, true]] as const) {
    const { rig, client } = await playing();
    rig.peer.client.cut();
    rig.step();
    await redialled(rig, 2);
    rig.peer.send(say.refused(code, ""));
    await settle();
    for (let i = 0; i < 60; i++) rig.step(), await settle();
    assert.equal(client.closed?.code, final ? code : undefined, String(code));
    assert.equal(rig.peers.length, final ? 2 : 3);
  }
});

test("who does not want to come back does not, and says so to the server", async () => {
  const { rig, client } = await playing({ reconnect: false });
  assert.equal(rig.peer.last(Kind.Hello)![11], undefined);
  rig.peer.client.cut();
  rig.step();
  assert.equal(client.closed?.code, Code.Lost);
});

test("a server that is silent for 5 s of frames is lost, and a tab that slept is not", async () => {
  const { rig, client } = await playing();
  rig.step(16, 100);
  assert.ok(rig.peer.datagrams.slice(-1)[0]!.length >= 32, "what is sent into silence is padded");
  for (let i = 0; i < 20; i++) rig.step(60_000); // A frame counts for 100 ms at most.
  assert.equal(client.status.phase, "playing");
  rig.step(100, 20);
  assert.equal(client.status.phase, "reconnecting");
  assert.match(client.status.text, /no packet from the server for 5000 ms/);
  assert.equal({ ...rig.peers[0]!.last(Kind.Close) }[1], Code.Timeout);
});

test("a break of the protocol is told to the server, and ends the client", async () => {
  const { rig, client } = await playing();
  rig.peer.send(say.accepted(99));
  rig.step(16, 2);
  assert.equal(client.closed?.code, Code.Protocol);
  assert.equal({ ...rig.peer.last(Kind.Close) }[1], Code.Protocol);
});

test("a tab that did not run for 20 s goes on with bounded buffers and without a thousand steps", async () => {
  const { rig, client } = await playing();
  let steps = 0;
  let inputs = 0;
  client.on(30, () => steps++);
  client.inputs(() => (inputs++, { Turn: 1, Fire: false }));
  for (let i = 0; i < 60; i++) {
    rig.peer.state(301 + i, 2 + i);
    rig.step();
  }
  steps = inputs = 0;
  for (let i = 0; i < 1200; i++) {
    rig.clock.pass(1000 / 60);
    rig.peer.state(361 + i, 62 + i);
  }
  assert.ok(client.stats.dropped >= 100, "what finds no room is dropped and counted");
  client.step();
  assert.ok(steps <= 8 && inputs <= 8, `${steps} steps`);
  assert.equal(client.status.phase, "playing");
  for (let i = 0; i < 60; i++) {
    rig.peer.state(1561 + i, 1262 + i);
    rig.step();
  }
  assert.equal(client.stats.appliedTick, 1620);
  assert.ok(client.stats.jumped > 1000, "the steps that were left out are counted");
  assert.ok(steps >= 55 && steps <= 75, `${steps} steps in a second`);
});

test("reliable messages that find no room break the connection, and the next one brings them", async () => {
  const { rig, client } = await playing();
  const heard: number[] = [];
  client.handle("tell", (m: any) => heard.push(Number(m.Text)));
  const tell = (n: number) => {
    const text = new TextEncoder().encode(String(n));
    return say.message({ method: 1, payload: Uint8Array.of(text.length, ...text) });
  };
  for (let i = 0; i < 1500; i++) rig.peer.send(tell(i));
  rig.step();
  assert.equal(client.status.phase, "reconnecting");
  await redialled(rig, 2);
  const resume = fields(rig.peer.hear().last(Kind.Hello)![11] as Uint8Array);
  const had = resume[2] as number;
  assert.ok(had > 900 && had < 1100, String(had));
  await rig.greet({ ...SECRET, resumed: true }, tables);
  rig.peer.send(say.accepted(0));
  for (let i = had; i < 1500; i++) rig.peer.send(tell(i));
  rig.step();
  assert.deepEqual(heard, [...Array(1500).keys()]);
});

test("the client steps itself while the page does not", async () => {
  const rig = new Rig();
  const dialled = rig.dial({ pump: true });
  await rig.greet({}, tables);
  rig.peer.send(say.accepted());
  rig.client = await dialled;
  let frames = 0;
  rig.client.on(50, () => frames++);
  rig.clock.pass(10_000);
  assert.ok(frames >= 20 && frames <= 41, `${frames} frames in 10 s without a step of the page`);
  frames = 0;
  rig.step(16, 100);
  assert.equal(frames, 100, "and none while it steps");
  rig.client.close();
  rig.clock.pass(10_000);
  assert.equal(frames, 100);
});

test("a simulated link delays both ways and loses datagrams, never the stream", async () => {
  const rig = new Rig();
  const client = await rig.play({}, {}, tables);
  client.simulate({ latencyMs: 50, loss: 1 });
  const heard: number[] = [];
  client.handle("tell", (m: any) => heard.push(Number(m.Text)));
  const before = rig.peer.datagrams.length;
  rig.peer.send(say.message({ method: 1, payload: Uint8Array.of(1, 0x31) }), say.message({ method: 1, payload: Uint8Array.of(1, 0x32) }));
  client.send("tell", { Text: "x" });
  rig.step(16, 3);
  assert.deepEqual([heard, texts(rig)], [[], []]);
  rig.step(16, 2);
  assert.deepEqual([heard, texts(rig)], [[1, 2], ["x"]]);
  assert.equal(rig.peer.datagrams.length, before);
  client.simulate({});
  rig.step(16, 30);
  assert.ok(rig.peer.datagrams.length > before);
});

test("a client moves to another room over its connection, and what was sent before it knew does not count", async () => {
  const { rig, client, phases } = await playing();
  const { peer } = rig;
  assert.ok(client.move("a@box"));
  peer.hear();
  assert.equal(new TextDecoder().decode(peer.last(Kind.Move)![1] as Uint8Array), "a@box");
  const call = client.call("ask", { Text: "?" }).catch((e: { code: number }) => e.code);
  peer.hear();
  const sent = peer.datagrams.length;
  peer.send(say.moved("a@box"));
  rig.step();
  await settle();
  assert.equal(await call, Code.Moved);
  assert.ok(!client.send("tell", { Text: "on the way" }) && !client.move("b@box"), "it is in no room");
  const hello = peer.hear().last(Kind.Hello)!;
  assert.equal(new TextDecoder().decode(hello[13] as Uint8Array), "a@box");
  assert.deepEqual([hello[16], fields(hello[11] as Uint8Array)[1], rig.peers.length], [sent + 1, undefined, 1]);
  rig.step(16, 3);
  assert.equal(peer.datagrams.length, sent, "it says nothing until it is welcome");
  peer.send(say.welcome({ id: 3, secret: "other", datagram: 50 }));
  await settle();
  rig.step();
  peer.send(say.accepted());
  peer.datagram((w) => w.sized(5, emptyPacket(400, 1)), 49);
  rig.step();
  assert.equal(client.status.phase, "loading", "a datagram of the session before");
  peer.datagram((w) => w.sized(5, emptyPacket(301, 1)), 50);
  rig.step();
  assert.deepEqual([client.id, client.stats.drops, client.status.phase, rig.errors], [3, 0, "playing", []]);
  assert.deepEqual(phases.slice(0, 2), ["moving", "loading"]);
  const first = fields(peer.datagrams[sent])[1];
  assert.equal(first, sent + 1, "datagrams are numbered on");
  peer.client.cut();
  rig.step();
  await redialled(rig, 2);
  assert.equal(rig.peer.hear().last(Kind.Hello)![16], undefined, "the next connection is a new one");
});

test("a room that refuses one who moves ends the client, and a connection that breaks on the way does not", async () => {
  for (const refusal of [say.refused(Code.Full, "8 of 8"), say.close(Code.Full, "8 of 8")]) {
    const { rig, client } = await playing();
    rig.peer.send(say.moved("a@box"));
    rig.step();
    await settle();
    rig.peer.send(refusal);
    await settle();
    rig.step();
    assert.deepEqual(client.closed, { code: Code.Full, text: "8 of 8" });
    assert.ok(rig.peer.hear().closed, "the connection goes, too");
  }
  const { rig, client } = await playing();
  rig.peer.send(say.moved("a@box"));
  rig.step();
  await settle();
  rig.peer.client.cut();
  await settle();
  await redialled(rig, 2);
  const hello = rig.peer.hear().last(Kind.Hello)!;
  assert.equal(new TextDecoder().decode(hello[13] as Uint8Array), "a@box", "the ticket is said again");
  assert.deepEqual([hello[16], client.closed, client.stats.drops], [undefined, undefined, 1]);
});
