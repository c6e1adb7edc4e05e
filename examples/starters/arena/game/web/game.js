import { connect } from "./netloop.js"; // every netloop server with a page serves it

// As in game.go.
const width = 960, height = 600, speed = 4, radius = 16, reloadMs = 300, glowMs = 150;

const status = document.getElementById("status");
const scores = document.getElementById("scores");
const canvas = document.querySelector("canvas");
const g = canvas.getContext("2d");

const name = new URLSearchParams(location.search).get("name") ?? `pilot ${Math.floor(Math.random() * 100)}`;
const client = await connect({ params: { Name: name } }).catch((e) => { status.textContent = e.message; throw e; });
const ships = client.class("ship").interpolate();
const beams = client.class("beam").interpolate();

// The keys and the mouse.
const held = new Set();
const mouse = { x: width / 2, y: height / 2, down: false };
const arrows = { KeyW: "ArrowUp", KeyA: "ArrowLeft", KeyS: "ArrowDown", KeyD: "ArrowRight" };
const press = (e, down) => {
  const key = arrows[e.code] ?? e.code;
  if (!key.startsWith("Arrow")) return;
  e.preventDefault();
  down ? held.add(key) : held.delete(key);
};
addEventListener("keydown", (e) => press(e, true));
addEventListener("keyup", (e) => press(e, false));
addEventListener("blur", () => { held.clear(); mouse.down = false; });
addEventListener("pointermove", (e) => {
  const box = canvas.getBoundingClientRect();
  mouse.x = (e.clientX - box.left) * width / box.width;
  mouse.y = (e.clientY - box.top) * height / box.height;
});
addEventListener("pointerdown", () => { mouse.down = true; });
addEventListener("pointerup", () => { mouse.down = false; });

// One input for each fixed step. The server repeats a lost one in the same way.
const along = (plus, minus) => held.has(plus) - held.has(minus);
const aim = () => {
  for (const ship of ships.owned()) {
    const s = ships.predicted(ship) ?? ship.state;
    return Math.atan2(mouse.y - s.Y, mouse.x - s.X);
  }
  return 0;
};
client.inputs(() => ({ DX: along("ArrowRight", "ArrowLeft"), DY: along("ArrowDown", "ArrowUp"), Aim: aim(), Fire: mouse.down }), {
  repeat: (last) => ({ ...last, Fire: false }),
});

// Prediction: the step of ship.go, once more. All numbers are multiples of 1/8, so they are equal;
// others need Math.fround.
const between = (least, x, most) => Math.min(Math.max(x, least), most);
ships.predict((ship, input, frame) => {
  ship.X = between(radius, ship.X + speed * input.DX, width - radius);
  ship.Y = between(radius, ship.Y + speed * input.DY, height - radius);
  ship.Aim = input.Aim;
  const now = BigInt(Math.round(frame.gameTime * 1e6)); // deadlines are nanoseconds
  if (!input.Fire || ship.Reload > now) return;
  ship.Reload = now + BigInt(reloadMs * 1e6);
  beams.spawn({ X: ship.X, Y: ship.Y, Aim: ship.Aim, End: now + BigInt(glowMs * 1e6), Born: { Step: 0n, N: 0 } });
});
beams.predict(() => {});

const drawBeam = (beam) => {
  const left = between(0, client.clock.left(beam.End) / glowMs, 1);
  g.strokeStyle = `rgb(255 214 120 / ${0.2 + 0.8 * left})`;
  g.lineWidth = 1 + 3 * left;
  g.beginPath();
  g.moveTo(beam.X + radius * Math.cos(beam.Aim), beam.Y + radius * Math.sin(beam.Aim));
  g.lineTo(beam.X + 1200 * Math.cos(beam.Aim), beam.Y + 1200 * Math.sin(beam.Aim));
  g.stroke();
};

const drawShip = (ship, own) => {
  g.save();
  g.translate(ship.X, ship.Y);
  g.fillStyle = "#8f9bab";
  g.fillText(ship.Name, 0, radius + 18);
  g.fillStyle = own ? "#ff9a4d" : "#5aa2f0";
  for (let i = 0; i < ship.Hull; i++) g.fillRect(10 * i - 14, -radius - 12, 8, 4);
  if (client.clock.left(ship.Shield) > 0) {
    g.strokeStyle = "#9fe8c4";
    g.lineWidth = 2;
    g.beginPath();
    g.arc(0, 0, radius + 4, 0, 7);
    g.stroke();
  }
  g.rotate(ship.Aim);
  g.beginPath();
  g.moveTo(radius + 4, 0);
  g.lineTo(-radius + 4, radius - 4);
  g.lineTo(-radius + 8, 0);
  g.lineTo(-radius + 4, -radius + 4);
  g.fill();
  g.restore();
};

const list = () => {
  const all = [...ships].sort((a, b) => b.state.Score - a.state.Score).slice(0, 8);
  scores.replaceChildren(...all.map((ship) => {
    const row = document.createElement("li");
    row.textContent = `${ship.state.Name} ${ship.state.Score}`; // text, never HTML: players chose it
    if (ship.owner === client.id) row.className = "own";
    return row;
  }));
};

const frame = (now) => {
  client.step(now);
  g.clearRect(0, 0, width, height);
  g.font = "13px system-ui";
  g.textAlign = "center";
  beams.views(drawBeam);
  ships.views((ship, object) => drawShip(ship, object.owner === client.id));
  list();
  const { phase, text } = client.status;
  status.textContent = phase === "playing" ? `${ships.size} ships, ${Math.round(client.stats.rttMs)} ms, by ${client.transport}` : `${phase} ${text}`;
  if (!client.closed) requestAnimationFrame(frame);
};
requestAnimationFrame(frame);
