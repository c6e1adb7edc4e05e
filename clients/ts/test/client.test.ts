// The client against a server that the test plays: joining, messages, the ends of a connection.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, NetloopError, Stage } from "../src/api.js";
import { Kind } from "../src/wire/frames.js";
import { emptyPacket, fields, messageOf, pageTables, Rig, say, settle } from "./rig.js";
import { tables } from "./tables.js";

/** Why a promise was rejected. */
async function refusal(p: Promise<unknown>): Promise<NetloopError> {
  const error = await p.then(() => assert.fail("it was not refused"), (e: unknown) => e);
  assert.ok(error instanceof NetloopError, String(error));
  return error;
}

test("a client joins, loads and plays", async () => {
  const rig = new Rig();
  const phases: string[] = [];
  const dialled = rig.dial({ room: "lobby", params: { name: "ann" }, token: "t" });
  await settle();
  const hello = rig.peer.hear().last(Kind.Hello)!;
  const text = (n: number) => new TextDecoder().decode(hello[n] as Uint8Array);
  assert.deepEqual([hello[1], text(2), hello[3], text(7), text(8), text(9), text(10)], [1, "wire", 3, "lobby", '{"name":"ann"}', "t", "netloop-ts"]);
  await rig.greet();
  assert.deepEqual(rig.peer.kinds(), [Kind.Hello, Kind.SchemaAccepted], "the tables are accepted, and nothing else is sent");
  rig.peer.send(say.accepted());
  rig.client = await dialled;
  rig.client.onStatus((s) => phases.push(`${s.phase} ${s.loaded}/${s.objects}`));
  assert.deepEqual([rig.client.id, rig.client.room, rig.client.status.phase, rig.client.transport], [7, "lobby", "loading", "memory"]);
  rig.peer.state(300, 1);
  rig.step();
  assert.deepEqual(phases, ["playing 0/0"]);
  assert.ok(rig.peer.datagrams.length > 0, "the state is acknowledged");
  assert.deepEqual([rig.client.stats.snapshots, rig.client.stats.appliedTick], [1, 300]);
});

test("a client reports mispredictions to its server, and none without any", async () => {
  const rig = new Rig();
  await rig.play();
  const reports = () => rig.peer.datagrams.splice(0).map((d) => fields(d)[10]).filter((n) => n !== undefined);
  rig.step(16, 200);
  assert.deepEqual(reports(), []);
  (rig.client as any).prediction.wrong = 3;
  for (let ms = 0; ms < 3000; ms += 16) {
    rig.peer.state(301 + ms / 16, 2 + ms / 16);
    rig.step();
  }
  assert.deepEqual(reports(), [3, 3, 3]);
  assert.deepEqual(rig.errors, []);
});

test("who is refused learns the code and the text", async () => {
  const rig = new Rig();
  const dialled = rig.dial();
  await settle();
  rig.peer.hear().send(say.refused(Code.Full, "8 of 8"));
  const error = await refusal(dialled);
  assert.deepEqual([error.code, error.message], [Code.Full, "8 of 8"]);
  rig.peer.hear();
  assert.ok(rig.peer.closed, "and closes the connection");
});

test("a game that refuses after the welcome is heard too", async () => {
  const rig = new Rig();
  const dialled = rig.dial();
  await rig.greet();
  rig.peer.send(say.close(Code.Refused, "not today"));
  const error = await refusal(dialled);
  assert.deepEqual([error.code, error.message], [Code.Refused, "not today"]);
});

test("a server that makes no sense is closed with a protocol error", async () => {
  const welcome = say.welcome({});
  for (const [what, frame] of [["a welcome without tables", welcome], ["no frame", Uint8Array.of(2, 0x12, 9)], ["an epoch", Uint8Array.of(2, 0x2a, 0)]] as const) {
    const rig = new Rig();
    const dialled = rig.dial();
    await settle();
    rig.peer.hear().send(frame);
    assert.equal((await refusal(dialled)).code, Code.Protocol, what);
    rig.peer.hear();
    assert.equal(rig.peer.closed?.code, Code.Protocol, what);
  }
});

test("tables that make no sense are refused, and those of another build by name", async () => {
  const rig = new Rig();
  const dialled = rig.dial();
  await settle();
  rig.peer.hear().send(say.tables(Uint8Array.of(0x0a, 1, 0)));
  assert.equal((await refusal(dialled)).code, Code.Protocol);

  const other = new Rig();
  const own = { name: "wire", major: 3, minor: 0, classes: { pos: { fields: { X: "float32 quant=1/128" } } }, methods: {} };
  const again = other.dial({ schema: own });
  await settle();
  other.peer.hear().send(say.tables(pageTables()));
  const error = await refusal(again);
  assert.equal(error.code, Code.SchemaMismatch);
  assert.match(error.message, /class "pos"\.X is float32 quant=1\/128 in the page and float32 quant=1\/256 on the server/);
  other.peer.hear();
  assert.equal(other.peer.closed?.code, Code.SchemaMismatch);
});

test("an aborted signal ends a connect at each stage, and later the client", async () => {
  for (const stage of ["before", "dialled", "welcomed", "playing"]) {
    const rig = new Rig();
    const abort = new AbortController();
    if (stage === "before") abort.abort();
    const dialled = stage === "playing" ? rig.play({ signal: abort.signal }) : rig.dial({ signal: abort.signal });
    if (stage === "dialled") await settle();
    if (stage === "welcomed") await rig.greet();
    if (stage === "playing") {
      const client = await dialled;
      abort.abort();
      assert.equal(client.closed?.code, Code.Left);
    } else {
      abort.abort();
      assert.equal((await refusal(dialled)).code, Code.Left, stage);
    }
    assert.equal(rig.peers.length, stage === "before" ? 0 : 1);
    if (stage === "before") continue;
    rig.clock.pass(1000);
    assert.equal(rig.peer.hear().closed?.code, Code.Left, stage);
  }
});

test("a server that never answers is given up", async () => {
  const rig = new Rig();
  const dialled = rig.dial({ timeoutMs: 3000 });
  await settle();
  rig.clock.pass(3000);
  assert.equal((await refusal(dialled)).code, Code.Timeout);
  rig.peer.hear();
  assert.ok(rig.peer.closed);
});

test("of two transports the one wins over which the server answers first, and only that is admitted", async () => {
  const rig = new Rig(["slow", "fast"]);
  const dialled = rig.dial();
  await settle();
  assert.equal(rig.peers.length, 1, "the second has to wait");
  rig.clock.pass(500);
  await rig.greet();
  const [slow, fast] = rig.peers;
  slow.hear();
  assert.deepEqual(slow.kinds(), [Kind.Hello]);
  assert.equal(slow.closed?.code, Code.Left);
  const attempts = [slow, fast].map((p) => new Uint8Array(p.last(Kind.Hello)![11] as Uint8Array));
  assert.notDeepEqual(attempts[0], attempts[1], "each hello has the number of its attempt");
  slow.send(say.tables(pageTables()));
  fast.send(say.accepted());
  rig.client = await dialled;
  assert.deepEqual(fast.kinds(), [Kind.Hello, Kind.SchemaAccepted]);
});

test("who is refused without a word learns why from what the server says of itself", async () => {
  const rig = new Rig();
  rig.info.refused = { code: Code.Busy, text: "too many" };
  const dialled = rig.dial();
  await settle();
  rig.peer.client.cut();
  const error = await refusal(dialled);
  assert.deepEqual([error.code, error.message], [Code.Busy, "too many"]);
  const other = new Rig();
  other.info.refused = rig.info.refused;
  await other.play();
  assert.equal(other.client.closed, undefined, "whom it lets in all the same is in");
});

test("a transport that fails makes room for the next at once, and who cannot connect learns why of all", async () => {
  const rig = new Rig(["first", "second"]);
  const dialled = rig.dial();
  await settle();
  rig.peer.client.cut();
  await settle();
  assert.equal(rig.peers.length, 2);
  rig.peer.client.cut();
  const error = await refusal(dialled);
  assert.equal(error.code, Code.Lost);
  assert.match(error.message, /first: cut; second: cut/);
});

test("messages run at their stage, in the order in which they came, and what throws costs no other", async () => {
  const rig = new Rig();
  const client = await rig.play({}, {}, tables);
  const log: string[] = [];
  client.handle("tell", (m: any, f) => {
    log.push(`${m.Text}@${f.stage}`);
    if (m.Text === "b") throw new Error("a fault of the page");
  });
  for (const stage of [Stage.FixedUpdate, Stage.Update] as const) client.on(stage, () => log.push(`system@${stage}`));
  const text = (s: string) => Uint8Array.of(s.length, ...new TextEncoder().encode(s));
  rig.peer.send(
    say.message({ method: 1, payload: text("b") }),
    say.message({ method: 1, stage: 30, payload: text("a") }),
    say.message({ method: 1, stage: 50, payload: text("c") }),
    say.message({ method: 1, stage: 60, payload: text("not allowed") }),
    say.message({ method: 9, payload: text("of no method") }),
    say.message({ method: 1, payload: Uint8Array.of(9) }),
  );
  rig.peer.datagram((w) => w.sized(6, messageOf({ method: 1, payload: text("d") })));
  rig.step();
  const systems = log.filter((l) => !l.startsWith("system@30"));
  assert.deepEqual(systems, ["a@30", "b@50", "c@50", "d@50", "system@50"]);
  const { rejected, unknown, dropped, errors } = client.stats;
  assert.deepEqual([rejected, unknown, dropped, errors], [1, 1, 1, 1]);
  assert.match(rig.errors[0]!, /handle tell: Error: a fault of the page/);
});

test("what is sent leaves with the next step, and what cannot is counted", async () => {
  const rig = new Rig();
  const client = await rig.play({}, {}, tables);
  assert.ok(client.send("tell", { Text: "hi" }, { stage: Stage.FixedUpdate }));
  assert.ok(client.send("shout", { Text: "hoo" }));
  rig.step(20);
  assert.deepEqual({ ...rig.peer.last(Kind.Message) }, { 1: 1, 2: 30, 7: Uint8Array.of(2, 0x68, 0x69) });
  assert.ok(rig.peer.datagrams.some((d) => new TextDecoder().decode(d).includes("hoo")), "an unreliable one in a datagram");
  assert.equal(client.send("tell", { Text: "x".repeat(200) }), false, "over its limit");
  assert.throws(() => client.send("whisper", {}), /unknown method "whisper"/);
  assert.equal(client.stats.unsent, 1);
  assert.throws(() => client.send("ask", { Text: "?" }), /ask is a call/);
  assert.throws(() => client.send("tell", { Text: "" }, { stage: Stage.Initialization }), /does not run at stage 10/);
});

test("calls are answered, refused, late or without an answer", async () => {
  const rig = new Rig();
  const client = await rig.play({}, {}, tables);
  const ask = (timeoutMs?: number) => client.call("ask", { Text: "?" }, timeoutMs ? { timeoutMs } : {});
  const calls = [ask(), ask(), ask(1000)];
  const [answered, refused, never] = calls.map((c) => c.then((v: unknown) => v, (e: unknown) => e));
  rig.peer.hear();
  assert.equal(client.stats.calls, 3);
  const reply = { method: 3, reply: true };
  rig.peer.send(
    say.message({ ...reply, call: 2, code: Code.Refused, text: "no" }),
    say.message({ ...reply, method: 1, call: 1, payload: Uint8Array.of(1, 0x78) }),
    say.message({ ...reply, call: 1, payload: Uint8Array.of(3, 0x79, 0x65, 0x73) }),
    say.message({ ...reply, call: 1, payload: Uint8Array.of(3, 0x79, 0x65, 0x73) }),
  );
  rig.step(16, 80);
  assert.deepEqual(await answered, { Text: "yes" });
  assert.deepEqual(await refused, new NetloopError(Code.Refused, "no"));
  assert.equal(((await never) as NetloopError).code, Code.Timeout);
  assert.deepEqual([client.stats.calls, client.stats.lateCalls], [0, 2], "one of another method, and one that came twice");
  assert.equal((await refusal(client.call("nothing", {}))).code, Code.UnknownMethod);
  assert.equal((await refusal(client.call("ask", { Text: "x".repeat(200) }))).code, Code.Invalid);
});

test("a message with its state waits for it", async () => {
  const rig = new Rig();
  const client = await rig.play({}, {}, tables);
  const log: string[] = [];
  client.handle("tell", (m: any) => log.push(m.Text));
  rig.peer.send(say.message({ method: 1, tick: 302, payload: Uint8Array.of(1, 0x61) }), say.message({ method: 1, payload: Uint8Array.of(1, 0x62) }));
  rig.step();
  assert.deepEqual([log, client.stats.held], [["b"], 1]);
  rig.peer.state(301, 2);
  rig.step();
  assert.deepEqual(log, ["b"]);
  rig.peer.state(302, 3);
  rig.step();
  assert.deepEqual([log, client.stats.held], [["b", "a"], 0]);
});

test("a kick says its code and text, fails what waits, and nothing follows", async () => {
  const rig = new Rig();
  const client = await rig.play({}, { secret: "s", keepMs: 10_000 }, tables);
  const phases: string[] = [];
  client.onStatus((s) => phases.push(`${s.phase} ${s.code} ${s.text}`));
  const call = refusal(client.call("ask", { Text: "?" }));
  const log: string[] = [];
  client.handle("tell", (m: any) => log.push(m.Text));
  rig.peer.send(say.message({ method: 1, payload: Uint8Array.of(1, 0x61) }), say.close(Code.Kicked, "cheated"));
  rig.step();
  assert.deepEqual(log, ["a"], "the server's last words are heard");
  assert.deepEqual([client.closed, phases], [{ code: Code.Kicked, text: "cheated" }, ["closed 3 cheated"]]);
  assert.equal((await call).code, Code.Kicked);
  assert.deepEqual(rig.peer.closed, { code: Code.Kicked, text: "cheated" }, "the close is answered");
  rig.step(16, 100);
  await settle();
  assert.deepEqual([rig.peers.length, client.send("tell", { Text: "" })], [1, false]);
  assert.equal((await refusal(client.call("ask", { Text: "" }))).code, Code.Kicked);
  assert.equal((await refusal(client.verify())).code, Code.Kicked);
});

test("who leaves says goodbye", async () => {
  const rig = new Rig();
  const client = await rig.play();
  client.close();
  client.close();
  rig.peer.hear();
  assert.deepEqual({ ...rig.peer.last(Kind.Close) }, { 1: Code.Left });
  const { peer } = rig;
  assert.ok(!peer.closed, "the server is given the time to answer");
  rig.clock.pass(500);
  assert.equal(peer.hear().closed?.code, Code.Left);
  client.step();
});

test("verify resolves with a digest that agrees, and asks for the full state when it does not", async () => {
  for (const [digest, want] of [[Uint8Array.of(0x25, 0x23, 0x22, 0x84, 0xe4, 0x9c, 0xf2, 0xcb), "ok"], [new Uint8Array(8), "differs"]] as const) {
    const rig = new Rig();
    const client = await rig.play();
    const result = client.verify().then(() => "ok", (e: Error) => (e.message.includes("differs") ? "differs" : e.message));
    rig.step();
    assert.deepEqual({ ...rig.peer.last(Kind.DigestRequest) }, { 1: 60 });
    const packet = emptyPacket(301, 2);
    const flagged = Uint8Array.of(3, packet[1]! | 3, ...packet.slice(2, -1), ...digest, 1);
    rig.peer.datagram((w) => w.sized(5, flagged));
    rig.step();
    assert.equal(await result, want);
    assert.equal(client.stats.unequal, want === "ok" ? 0 : 1);
    if (want !== "ok") assert.deepEqual({ ...rig.peer.last(Kind.DigestRequest) }, { 2: 1 });
  }
});
