import { connect } from "./netloop.js"; // every netloop server with a page serves it

const $ = (id) => document.getElementById(id);
const suits = ["♣", "♦", "♥", "♠"];
const ranks = ["2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K", "A"];
const suitOf = (card) => Math.floor(card / 13);

// A name for each tab, so that two tabs are two players; ?name=ada chooses one.
const name = new URLSearchParams(location.search).get("name") ?? sessionStorage.name ?? `guest ${Math.floor(Math.random() * 1000)}`;
sessionStorage.name = name;

// The part after # is the room: a reload returns to the table.
const room = decodeURIComponent(location.hash.slice(1));
const client = await connect({ token: name, room: room || undefined })
  .catch(() => connect({ token: name })) // Others play there.
  .catch((e) => { $("status").textContent = e.message; throw e; });
const listings = client.class("listing");
const tables = client.class("table");
const seats = client.class("seat");

const ask = (call, question) => client.call(call, question).catch((e) => { $("turn").textContent = e.message; });
$("any").onclick = () => ask("sit", { Table: "" });
$("leave").onclick = () => ask("leave", {});

// element makes an element. Texts of players are text, never HTML.
const element = (tag, text, onclick) => Object.assign(document.createElement(tag), { textContent: text, onclick: onclick ?? null });

const cardElement = (tag, card, onclick) => {
  const suit = suitOf(card);
  const e = element(tag, `${ranks[card % 13]}\n${suits[suit]}`, onclick);
  e.className = suit === 1 || suit === 2 ? "card red" : "card";
  return e;
};

// draw shows the state. It runs when something has changed.
const draw = () => {
  const [table] = [...tables].map((o) => o.state);
  $("lobby").hidden = table !== undefined;
  $("table").hidden = table === undefined;
  history.replaceState(null, "", client.room ? `#${encodeURIComponent(client.room)}` : location.pathname + location.search);
  if (table) drawTable(table);
  else drawLobby();
};

const drawLobby = () => {
  $("tables").replaceChildren(...[...listings].map(({ state }) => {
    const button = element("button", state.Players.join(", ") || "an empty table", () => ask("sit", { Table: state.Table }));
    button.disabled = state.Playing && !state.Players.includes(name);
    button.append(element("small", state.Playing ? "playing" : "waiting for players"));
    const item = element("li", "");
    item.append(button);
    return item;
  }));
};

const drawTable = (table) => {
  const all = [...seats].sort((a, b) => a.state.Place - b.state.Place);
  const own = all.find((o) => o.owner === client.id)?.state;
  const hand = [...(own?.Hand ?? [])]; // []uint8 is a Uint8Array
  const mine = table.Playing && !table.Over && own?.Place === table.Turn;
  const lead = table.Trick.length < all.length ? table.Trick[0] : undefined; // A full trick is replaced.
  const follows = (card) => lead === undefined || suitOf(card) === suitOf(lead);
  $("seats").replaceChildren(...all.map(({ state }) => {
    const item = element("li", `${state.Player} · ${state.Won}`);
    if (table.Playing && !table.Over && state.Place === table.Turn) item.classList.add("turn");
    if (state.Presence.Status !== 0) item.classList.add("away");
    return item;
  }));
  $("trick").replaceChildren(...[...table.Trick].map((card) => cardElement("div", card)));
  $("hand").replaceChildren(...hand.map((card) => {
    const e = cardElement("button", card, () => ask("play", { Card: card }));
    e.disabled = !mine || !(follows(card) || !hand.some(follows));
    if (!e.disabled) e.classList.add("fits");
    return e;
  }));
  const best = Math.max(...all.map((o) => o.state.Won));
  const winners = all.filter((o) => o.state.Won === best).map((o) => o.state.Player);
  $("turn").textContent = !table.Playing ? "Waiting for another player: open this page once more."
    : table.Over ? `${winners.join(" and ")} took the most tricks.`
    : mine ? "Your turn: follow the suit if you can. The highest card of the suit takes the trick."
    : `${all[table.Turn]?.state.Player ?? "…"} is next.`;
};

let changed = true;
for (const k of [listings, tables, seats]) for (const on of ["onSpawn", "onChange", "onDespawn"]) k[on](() => { changed = true; });
client.onStatus(() => { changed = true; });

const frame = (now) => {
  client.step(now);
  if (changed && client.status.phase === "playing") draw();
  changed = false;
  for (const { state } of tables) { // The bar of the turn needs no message: both sides know its end.
    const left = state.Clock.Length ? client.clock.left(state.Clock.Until) / state.Clock.Length : 0;
    $("clock").firstElementChild.style.width = `${100 * Math.min(Math.max(left, 0), 1)}%`;
  }
  const { phase, text } = client.status;
  $("status").textContent = phase === "playing" ? name : `${phase} ${text}`;
  if (!client.closed) requestAnimationFrame(frame);
};
requestAnimationFrame(frame);
