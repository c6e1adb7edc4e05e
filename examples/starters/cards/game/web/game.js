import { connect } from "./netloop.js"; // every netloop server with a page serves it

const $ = (id) => document.getElementById(id);
const suits = ["♣", "♦", "♥", "♠"];
const ranks = ["A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K"];
const isEight = (card) => card % 13 === 7;
const fits = (card, table) => isEight(card) || Math.floor(card / 13) === table.Suit || card % 13 === table.Top % 13;

// A name for each tab, so that two tabs are two players; ?name=ada chooses one.
const name = new URLSearchParams(location.search).get("name") ?? sessionStorage.name ?? `guest ${Math.floor(Math.random() * 1000)}`;
sessionStorage.name = name;

// The part after # is the room: a reload returns to the table.
const room = decodeURIComponent(location.hash.slice(1));
const client = await connect({ token: name, room: room || undefined })
  .catch(() => connect({ token: name })) // The table is gone, or others play there.
  .catch((e) => { $("status").textContent = e.message; throw e; });
const listings = client.class("listing");
const tables = client.class("table");
const seats = client.class("seat");

const say = (e) => { $("turn").textContent = e.message; };
const go = (call, question) => client.call(call, question).then((at) => client.move(at.Ticket)).catch(say);
const turn = (move) => client.call("turn", { Draw: false, Card: 0, Suit: 0, ...move }).catch(say);
$("any").onclick = () => go("sit", { Room: "" });
$("leave").onclick = () => go("leave", {});
$("pile").onclick = () => turn({ Draw: true });

// play plays a card. An eight asks for a suit first.
const play = (card) => {
  if (!isEight(card)) return turn({ Card: card });
  $("suit").replaceChildren(...suits.map((suit, i) => element("button", suit, () => { $("suit").close(); turn({ Card: card, Suit: i }); })));
  $("suit").showModal();
};

// element makes an element. Texts of players are text, never HTML.
const element = (tag, text, onclick) => Object.assign(document.createElement(tag), { textContent: text, onclick: onclick ?? null });

const cardElement = (tag, card, onclick) => {
  const suit = Math.floor(card / 13);
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
    const item = element("li", "");
    const full = state.Playing || state.Players.length >= state.Seats;
    const button = element("button", state.Players.join(", ") || "an empty table", () => go("sit", { Room: state.Room }));
    button.disabled = full && !state.Players.includes(name);
    button.append(element("small", state.Playing ? "playing" : `${state.Players.length} of ${state.Seats} players`));
    item.append(button);
    return item;
  }));
};

const drawTable = (table) => {
  const all = [...seats].sort((a, b) => a.state.Place - b.state.Place);
  const own = all.find((o) => o.owner === client.id)?.state;
  const mine = table.Playing && table.Winner === "" && own?.Place === table.Turn;
  $("seats").replaceChildren(...all.map(({ state }) => {
    const item = element("li", `${state.Player} · ${state.Cards}`);
    if (table.Playing && state.Place === table.Turn) item.classList.add("turn");
    if (state.Away) item.classList.add("away");
    return item;
  }));
  $("middle").hidden = !table.Playing;
  if (table.Playing) $("top").replaceWith(Object.assign(cardElement("div", table.Top), { id: "top" }));
  $("pile").textContent = `draw\n${table.Pile}`;
  $("pile").disabled = !mine;
  $("hand").replaceChildren(...[...(own?.Hand ?? [])].map((card) => { // []uint8 is a Uint8Array
    const e = cardElement("button", card, () => play(card));
    e.disabled = !mine || !fits(card, table);
    if (!e.disabled) e.classList.add("fits");
    return e;
  }));
  $("turn").textContent = !table.Playing ? "Waiting for another player: open this page once more."
    : table.Winner ? `${table.Winner} has won.`
    : mine ? `Your turn: ${suits[table.Suit]}, the rank, or an eight.`
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
