import { connect } from "./netloop.js"; // every netloop server with a page serves it

const status = document.getElementById("status");
const g = document.querySelector("canvas").getContext("2d");
const client = await connect().catch((e) => { status.textContent = e.message; throw e; });
const dots = client.class("dot").interpolate();
const coins = client.class("coin");

const held = new Set();
const key = (e, down) => {
  if (!e.key.startsWith("Arrow") || e.repeat) return;
  e.preventDefault();
  down ? held.add(e.key) : held.delete(e.key);
  const along = (plus, minus) => 60 * (held.has(plus) - held.has(minus)); // units a second
  client.send("move", { DX: along("ArrowRight", "ArrowLeft"), DY: along("ArrowDown", "ArrowUp") });
};
addEventListener("keydown", (e) => key(e, true));
addEventListener("keyup", (e) => key(e, false));

const disc = (x, y, r, colour) => {
  g.fillStyle = colour;
  g.beginPath();
  g.arc(x * 6, y * 6, r, 0, 7);
  g.fill();
};
const frame = (now) => {
  client.step(now);
  g.clearRect(0, 0, 600, 600);
  g.strokeRect(0, 0, 600, 600);
  coins.views((coin) => disc(coin.X, coin.Y, 12, "gold"));
  dots.views((dot, object) => {
    disc(dot.X, dot.Y, 8, object.owner === client.id ? "darkorange" : "steelblue");
    g.fillText(dot.Score, dot.X * 6 + 10, dot.Y * 6 - 10);
  });
  const { phase, text } = client.status;
  status.textContent = phase === "playing" ? `${dots.size} dots, by ${client.transport}` : `${phase} ${text}`;
  if (!client.closed) requestAnimationFrame(frame);
};
requestAnimationFrame(frame);
