// The embedded client in Node, over WebSocket, on the real server.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Code, connect } from "../../clients/ts/dist/netloop.js";
import { protobufCodecs } from "../../clients/ts/dist/protobuf.js";
import { Server, until } from "./server.mjs";

const field = (no, name) => ({ no, name, kind: "string", repeated: false, optional: false, of: "" });
const protobuf = protobufCodecs({ "arena.v1.Say": [field(1, "text")], "arena.v1.Said": [field(1, "name"), field(2, "text")] });

/** play joins a server, and steps until stop is called. */
async function play(server, options = {}) {
  const errors = [];
  const client = await connect({
    url: new URL("/connect.json", server.url), params: {}, protobuf, transports: ["websocket"],
    onError: (e, where) => errors.push(`${where}: ${e}`), ...options,
  });
  const timer = setInterval(() => client.step(), 16);
  return { client, errors, stop: () => { clearInterval(timer); client.close(); } };
}

/** on starts a separate server for a test. */
async function on(flags, fn, program) {
  const server = await Server.start(flags, {}, program);
  try {
    await fn(server);
  } finally {
    await server.stop();
  }
}

test("joins, calls, sends, receives, makes inputs, and has the server's state", () => on([], async (server) => {
  const { client, errors, stop } = await play(server);
  const said = [];
  client.handle("said", (m) => said.push(m.text));
  const ships = client.class("ship").interpolate();
  const sampled = [];
  client.inputs((frame) => {
    for (const ship of ships.owned()) sampled.push(ships.predicted(ship)?.Score === frame.fixedStep - 1);
    return { Thrust: true, Fire: false, Turn: 0 };
  });
  ships.predict((ship, _, frame) => { ship.Score = frame.fixedStep; });
  await until("it plays", () => client.status.phase === "playing" && ships.size === 1);
  assert.equal(client.transport, "websocket");
  const [own] = ships.owned();
  const from = own.state.X;
  assert.ok(client.send("say", { text: "hällo" }));
  await until("it hears itself", () => said.includes("hällo"));
  const { Rows } = await client.call("standings", { Top: 3 });
  assert.deepEqual(Rows, [{ Name: own.state.Name, Score: 0 }]);
  await until("the inputs move the ship", () => Math.abs(own.state.X - from) > 20);
  await until("a sampler has the state that was predicted last", () => sampled.at(-1));
  await client.verify();
  const { malformed, unequal, dropped, rttMs, inputsMissed, inputs, synced } = client.stats;
  assert.deepEqual([malformed, unequal, dropped, errors, synced], [0, 0, 0, [], true]);
  assert.ok(rttMs < 1000 && inputs > inputsMissed, JSON.stringify(client.stats));
  stop();
}));

test("gets the reason of a kick", () => on(["--client-kick", "20"], async (server) => {
  const { client, stop } = await play(server);
  client.handle("said", () => {});
  for (let i = 0; i < 200; i++) client.send("say", { text: `line ${i}` });
  const closed = await until("it is closed", () => client.closed);
  assert.equal(closed.code, Code.Flood);
  assert.match(closed.text, /\w+ \w+/);
  stop();
}));

test("resumes after its socket was cut, without a lost message", () => on([], async (server) => {
  const { client, errors, stop } = await play(server);
  const said = [];
  client.handle("said", (m) => said.push(m.text));
  await until("it plays", () => client.status.phase === "playing");
  const { id } = client;
  client.cut();
  client.step();
  assert.equal(client.status.phase, "reconnecting");
  assert.ok(client.send("say", { text: "while away" }));
  await until("it is back", () => client.status.phase === "playing");
  await until("it hears itself", () => said.includes("while away"));
  await client.verify();
  assert.deepEqual([client.id, client.stats.resumes, client.stats.drops, errors], [id, 1, 1, []]);
  stop();
}));

test("joins a restarted server", async () => {
  const first = await Server.start();
  const { client, stop } = await play(first, { reconnect: { giveUpMs: 30_000 } });
  await until("it plays", () => client.status.phase === "playing");
  first.process.kill("SIGKILL");
  await first.ended;
  const second = await Server.start([], first.ports);
  try {
    await until("it plays again", () => client.status.phase === "playing" && client.stats.drops === 1);
    assert.equal(client.stats.resumes, 0);
    await until("its new ship is there", () => [...client.class("ship").owned()].length === 1);
    await client.verify();
    stop();
  } finally {
    await second.stop();
  }
});

test("moves from a lobby to a table, and back, over one connection", () => on(["--cards.players", "2"], async (server) => {
  const { client, errors, stop } = await play(server, { token: "ann", schema: undefined });
  const phases = [];
  const there = (what, is) => until(what, () => client.status.phase === "playing" && is());
  await there("it is in the lobby", () => true);
  client.onStatus((s) => phases.push(s.phase));
  const place = await client.call("lobby.sit", { Table: "", Private: false, Watch: false });
  assert.ok(client.move(place.Ticket));
  await there("it sits at the table", () => client.room === place.Room && client.class("seat").size > 0);
  await client.verify();
  assert.deepEqual([...client.class("listing").all()], [], "the lobby's objects are gone");
  const back = await client.call("table.leave", {});
  assert.ok(client.move(back.Ticket));
  await there("it is in the lobby again", () => client.room !== place.Room && client.class("listing").size > 0);
  await client.verify();
  assert.deepEqual(phases, ["moving", "loading", "playing", "moving", "loading", "playing"]);
  assert.deepEqual([client.stats.drops, client.stats.malformed, errors], [0, 0, []]);
  stop();
}, "cards"));

test("gets the reason of a full server for each kind of refusal", () => on(["--max-clients", "1"], async (server) => {
  const { client, stop } = await play(server);
  await until("it plays", () => client.status.phase === "playing");
  const codes = new Set();
  for (let i = 0; i < 30; i++) codes.add(await play(server).catch((e) => e.code));
  assert.deepEqual([...codes], [Code.Full]);
  stop();
}));

test("a page of another game is refused with the reason", () => on([], async (server) => {
  const schema = { name: "chess", major: 1, minor: 0, classes: {}, methods: {} };
  await assert.rejects(play(server, { schema }), { code: 5, message: /server has schema "arena", client "chess"/ });
}));
