import { connect } from "./netloop.js"; // every netloop server with a page serves it

const status = document.getElementById("status");
const g = document.querySelector("canvas").getContext("2d");
const client = await connect().catch((e) => { status.textContent = e.message; throw e; });
const dots = client.class("dot").interpolate();
const coins = client.class("coin");

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
  });
  const { phase, text } = client.status;
  status.textContent = phase === "playing" ? `${dots.size} players, by ${client.transport}` : `${phase} ${text}`;
  if (!client.closed) requestAnimationFrame(frame);
};
requestAnimationFrame(frame);
