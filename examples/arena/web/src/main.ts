// The page of the arena. It shows the arena at once, and a key press starts a ship.
//
//   keys, thumbs, gamepad ──▶ Controls ──▶ Game (client: inputs, prediction, interpolation)
//                                            │ views, once per frame
//   network panel ◀── Hud ◀── Client.stats   ▼
//                                        Painter (canvas)

import { netGraph, type NetGraph } from "@netloop/client/netgraph";

import { Camera, way } from "./camera.js";
import { Controls, typing } from "./controls.js";
import { Effects } from "./effects.js";
import { Game, enterArena } from "./game.js";
import { Hud } from "./hud.js";
import { leagueOf } from "./league.js";
import { Painter, type ShipLook } from "./paint.js";
import { glowMs } from "./steer.js";
import { Sound } from "./sound.js";
import { theme } from "./theme.js";
import { comingBack, troubleOf, troubleOfError } from "./trouble.js";
import type { Ship } from "../schema.js";

const playAcross = 900; // units of the arena across the shorter side, for a player
const watchAcross = 1500;
const hearing = 900; // units
const best = 8;

const controls = new Controls(document);
const hud = new Hud();
const sound = new Sound();
const effects = new Effects();
const camera = new Camera();
const painter = new Painter(document.getElementById("arena") as HTMLCanvasElement, camera);

let game: Game | undefined;
let graph: NetGraph | undefined;
let wanted: string | undefined; // The name of a player who waits for a ship.
let joined: string | undefined; // The name of a player of a tournament.
let playing = false;
let last = performance.now();
let frameMs = 16;
let leader = "";
const look: ShipLook = { x: 0, y: 0, heading: 0, thrust: false, name: "", hull: 0, shielded: false, own: false };

/** begin connects, with the name of a player of a tournament, and shows the result. */
async function begin(name?: string): Promise<void> {
  hud.trouble("");
  hud.intro("connecting…");
  game?.client.close();
  game = undefined;
  joined = name;
  try {
    const client = await enterArena(name);
    game = new Game(client, controls, {
      said: (name, text) => hud.said(name, text),
      struck: (_, ship) => (ship === game?.own?.id ? sound.struck() : sound.hit()),
      fell: (ship, own) => fell(ship, own),
      collected: () => sound.pickup(),
    });
    client.onStatus((s) => {
      if (s.phase === "closed" && game?.client === client) ended(s.code, s.text);
      else if (s.phase === "closed") return; // Replaced by begin.
      else if (s.phase === "reconnecting") show(comingBack(s));
      else hud.trouble("");
    });
    graph?.remove();
    graph = netGraph(client, { key: "", inset: "var(--graph)" });
    graph.toggle(hud.graph);
    hud.connected();
  } catch (e) {
    hud.intro("");
    show(troubleOfError(e));
  }
}

function show(t: { title: string; text: string; again: boolean }): void {
  hud.trouble(t.title, t.text, t.again);
}

function ended(code: number, text: string): void {
  game = undefined;
  land();
  show(troubleOf(code, text));
}

/** take asks for a ship. */
function take(name: string): void {
  sound.wake();
  if (!game || playing || wanted !== undefined) return;
  const league = leagueOf(game);
  if (league && !league.joins) return;
  wanted = name || `guest ${Math.floor(Math.random() * 900 + 100)}`;
  if (league) void begin(wanted);
  else game.enter(wanted);
}

function land(): void {
  playing = false;
  wanted = undefined;
  controls.letGo();
  hud.playing(undefined);
}

function fell(ship: Ship, own: boolean): void {
  effects.burst(ship.X, ship.Y, own, last / 1000);
  sound.burst(far(ship.X, ship.Y));
}

/** far returns the distance of a position for sounds: 0 at the camera, 1 out of hearing. */
function far(x: number, y: number): number {
  return Math.min(1, Math.hypot(way(camera.x, x), way(camera.y, y)) / hearing);
}

/** frame runs and draws one frame. */
function frame(now: number): void {
  requestAnimationFrame(frame);
  const dt = Math.min(0.1, Math.max(0, (now - last) / 1000));
  last = now;
  game?.client.step(now);
  const begun = performance.now();
  painter.begin(now / 1000);
  if (game) draw(game, dt, now / 1000);
  frameMs += (performance.now() - begun - frameMs) * 0.05;
}

/** draw draws all objects, from the ground up. */
function draw(g: Game, dt: number, now: number): void {
  const own = g.own && g.ships.view(g.own);
  aim(g, own, dt);
  g.rocks.views((r, o) => painter.rock(o.id, r.X, r.Y, r.Radius));
  g.pickups.views((p, o) => painter.pickup(o.id, p.X, p.Y, p.Kind === 1));
  g.shots.views((s, o) => painter.beam(s.X, s.Y, s.Heading, Math.min(1, Math.max(0.15, g.client.clock.left(s.End) / glowMs)), o.owner === g.client.id));
  g.ships.views((s, o) => {
    look.x = s.X;
    look.y = s.Y;
    look.heading = s.Heading;
    look.thrust = s.Thrust;
    look.name = s.Name;
    look.hull = s.Hull;
    look.shielded = g.client.clock.left(s.Shield) > 0;
    look.own = o === g.own;
    painter.ship(o.id, look);
  });
  if (hud.ghosts) ghosts(g);
  effects.draw(painter, now);
  painter.map();
  g.ships.views((s, o) => painter.dot(s.X, s.Y, o === g.own));
}

/** aim points the camera at the player's ship, or at the leader's. */
function aim(g: Game, own: Ship | undefined, dt: number): void {
  if (own && !playing) {
    playing = true;
    wanted = undefined;
    hud.playing(own.Name);
    (document.activeElement as HTMLElement | null)?.blur();
    camera.follow(own.X, own.Y, 1, 0);
  }
  if (playing && !g.own) land();
  const league = leagueOf(g);
  hud.intro(league ? league.intro : "Press any key to fly");
  hud.joining(!league || league.joins);
  hud.duel(league?.duel ?? "");
  camera.lookAcross(own ? playAcross : watchAcross, dt);
  if (own) {
    hud.me(own.Hull, own.Score);
    camera.follow(own.X, own.Y, dt, 0.12);
    return;
  }
  g.ships.views((s) => {
    if (s.Name === leader) camera.follow(s.X, s.Y, dt, 3);
  });
}

/** ghosts shows the positions of ships by the server, by interpolation and by prediction. */
function ghosts(g: Game): void {
  for (const o of g.ships) {
    painter.ghost(o.state.X, o.state.Y, o.state.Heading, theme.server);
    const seen = g.ships.view(o);
    if (seen && o !== g.own) painter.ghost(seen.X, seen.Y, seen.Heading, theme.interpolated);
    const ahead = g.ships.predicted(o);
    if (ahead) painter.ghost(ahead.X, ahead.Y, ahead.Heading, theme.predicted);
  }
}

let bytes = 0;

/** figures updates the network figures and the scores, once a second. */
function figures(): void {
  const g = game;
  if (!g || g.client.status.phase !== "playing") return;
  const s = g.client.stats;
  hud.figures({
    transport: s.transport,
    rttMs: s.rttMs,
    snapshotsPerSecond: s.snapshotRate,
    interpolationMs: s.viewDelayMs,
    mispredictions: s.mispredicted,
    kbitPerSecond: Math.max(0, s.bytesIn - bytes) / 125,
    frameMs,
  });
  bytes = s.bytesIn;
  g.best(best).then(
    (rows) => {
      leader = rows[0]?.name ?? "";
      hud.scores(rows, g.own?.state.Name);
    },
    () => {}, // The next second asks again.
  );
}

hud.onJoin = take;
hud.onSay = (text) => game?.say(text);
hud.onWorse = (w) => game?.client.simulate({ latencyMs: w.delayMs / 2, jitterMs: w.jitterMs, loss: w.loss });
hud.onAgain = () => void begin(joined);
hud.onGraph = (shown) => graph?.toggle(shown);
window.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || typing(e.target)) return;
  if (e.code === "KeyN") hud.foldNet();
  else if (e.code === "KeyG") hud.showGhosts(!hud.ghosts);
  else if (e.code === "F3") {
    e.preventDefault();
    hud.showGraph(!hud.graph);
  } else if (e.code === "KeyM") hud.said("", sound.toggle() ? "sound on" : "sound off");
  else if (!playing && e.key !== "Tab" && e.key !== "Shift") {
    e.preventDefault();
    take((document.getElementById("name") as HTMLInputElement).value.trim());
  } else if (playing && e.code === "Enter") {
    e.preventDefault();
    hud.openChat();
  }
});
window.addEventListener("pointerdown", () => sound.wake());
window.addEventListener("pagehide", () => game?.client.close());
document.getElementById("touch")!.addEventListener("pointerdown", () => take(""));
// For the browser's console, and for tests: the current game.
Object.defineProperty(window, "arena", { value: { get game() { return game; } } });
setInterval(figures, 1000);
requestAnimationFrame(frame);
void begin();
