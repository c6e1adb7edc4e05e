import { connect } from "./netloop.js"; // every netloop server with a page serves it

const status = document.getElementById("status");
const g = document.querySelector("canvas").getContext("2d");
const name = new URLSearchParams(location.search).get("name") ?? `player ${Math.floor(Math.random() * 100)}`;
const client = await connect({ params: { Name: name } }).catch((e) => { status.textContent = e.message; throw e; });
const dots = client.class("dot").interpolate();
const coins = client.class("coin");
const rounds = client.class("round");
const listings = client.class("listing");
const bests = client.class("best");
document.getElementById("play").onclick = () => client.send("play", {});
document.getElementById("leave").onclick = () => client.send("leave", {});

const held = new Set();
const along = (plus, minus) => held.has(plus) - held.has(minus);
const press = (e, down) => {
  if (!e.key.startsWith("Arrow") || e.repeat) return;
  e.preventDefault();
  down ? held.add(e.key) : held.delete(e.key);
};
addEventListener("keydown", (e) => press(e, true));
addEventListener("keyup", (e) => press(e, false));

// One input for each fixed step, and the step of game.go, run at once for the own dot.
const stride = 0.625, size = 100;
const move = (x, key) => Math.min(Math.max(x + stride * key, 0), size);
client.inputs(() => ({ DX: along("ArrowRight", "ArrowLeft"), DY: along("ArrowDown", "ArrowUp") }));
dots.predict((dot, keys) => {
  dot.X = move(dot.X, keys.DX);
  dot.Y = move(dot.Y, keys.DY);
});

const disc = (x, y, r, colour) => {
  g.fillStyle = colour;
  g.beginPath();
  g.arc(x * 8, y * 8, r, 0, 7);
  g.fill();
};

// The bar, the winner and the scores. Names are set as text, never as HTML.
const show = () => {
  let left = 0, winner = "";
  for (const { state } of rounds) {
    left = client.clock.left(state.Clock.Until) / state.Clock.Length;
    winner = state.Winner;
  }
  document.querySelector("#clock div").style.width = `${100 * Math.min(Math.max(left, 0), 1)}%`;
  document.getElementById("winner").textContent = winner && `${winner} wins`;
  const all = [...dots].sort((a, b) => b.state.Score - a.state.Score).slice(0, 10);
  document.getElementById("scores").replaceChildren(...all.map((dot) => {
    const row = document.createElement("li");
    row.append(dot.state.Name, Object.assign(document.createElement("b"), { textContent: dot.state.Score }));
    if (dot.owner === client.id) row.className = "own";
    return row;
  }));
};

// The lobby is the room without a name. A move to another room replaces all objects.
const showLobby = () => {
  const inLobby = client.status.phase === "playing" && client.room === "";
  document.getElementById("lobby").hidden = !inLobby;
  document.getElementById("leave").hidden = inLobby;
  document.getElementById("arenas").replaceChildren(...[...listings].map(({ state }) => {
    return Object.assign(document.createElement("li"), { textContent: `an arena with ${state.Players} of ${state.Seats} players` });
  }));
  for (const { state } of bests) {
    document.getElementById("best").replaceChildren(...state.Records.map((best) => {
      return Object.assign(document.createElement("li"), { textContent: `${best.Name} took ${best.Score} coins` });
    }));
  }
};

const frame = (now) => {
  client.step(now);
  g.clearRect(0, 0, 800, 800);
  g.font = "bold 18px system-ui";
  g.textAlign = "center";
  coins.views((coin) => disc(coin.X, coin.Y, 14, "#f5c542"));
  dots.views((dot, object) => {
    disc(dot.X, dot.Y, 18, object.owner === client.id ? "#ff8a3d" : "#4d8fe0");
    g.fillStyle = "#14171c";
    g.fillText(dot.Score, dot.X * 8, dot.Y * 8 + 6);
    g.fillStyle = "#aab4c0";
    g.fillText(dot.Name, dot.X * 8, dot.Y * 8 - 26);
  });
  show();
  showLobby();
  const { phase, text } = client.status;
  const where = client.room === "" ? "in the lobby" : `${dots.size} players`;
  status.textContent = phase === "playing" ? `${where}, by ${client.transport}` : `${phase} ${text}`;
  if (!client.closed) requestAnimationFrame(frame);
};
requestAnimationFrame(frame);
