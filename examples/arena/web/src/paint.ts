import { Camera, size, wrap } from "./camera.js";
import { theme } from "./theme.js";

const shipRadius = 14;
const shotRange = 800;
const turn = 2 * Math.PI;

/** ShipLook is the visible state of a ship. */
export interface ShipLook {
  x: number;
  y: number;
  heading: number;
  thrust: boolean;
  name: string;
  hull: number;
  shielded: boolean;
  own: boolean;
}

/**
 * Painter draws a frame on a canvas: begin, and then the objects. It caches the paths of objects
 * with individual shapes, and makes no garbage while it draws.
 *
 * It uses Canvas 2D only: two hundred small paths are far below its capacity at 60 frames a second,
 * and a page without a library has none to load and to update.
 */
export class Painter {
  private readonly g: CanvasRenderingContext2D;
  private readonly rocks = new Map<number, Path2D>();
  private readonly hull = shipPath();
  private readonly flame = flamePath();
  private sky: CanvasGradient | undefined;
  private ratio = 1;
  private time = 0;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    readonly camera: Camera,
  ) {
    const g = canvas.getContext("2d", { alpha: false });
    if (!g) throw new Error("this browser has no canvas");
    this.g = g;
  }

  /** begin clears the frame. now is in seconds. */
  begin(now: number): void {
    this.time = now;
    this.fit();
    const { g, camera } = this;
    g.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    g.globalAlpha = 1;
    g.fillStyle = this.sky ?? theme.sky;
    g.fillRect(0, 0, camera.width, camera.height);
    this.drawGrid();
    this.drawStars();
  }

  /** fit makes the canvas as large as the window. */
  private fit(): void {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const width = this.canvas.clientWidth;
    const height = this.canvas.clientHeight;
    const w = Math.round(width * ratio);
    const h = Math.round(height * ratio);
    if (this.canvas.width === w && this.canvas.height === h && this.sky) return;
    this.canvas.width = w;
    this.canvas.height = h;
    this.ratio = ratio;
    this.camera.resize(width, height);
    const far = Math.hypot(width, height) / 2;
    this.sky = this.g.createRadialGradient(width / 2, height / 2, far * 0.1, width / 2, height / 2, far);
    this.sky.addColorStop(0, "#121a2c");
    this.sky.addColorStop(1, theme.skyEdge);
  }

  private drawGrid(): void {
    const { g, camera } = this;
    const step = 256;
    g.strokeStyle = theme.grid;
    g.lineWidth = 1;
    g.beginPath();
    const halfW = camera.width / 2 / camera.zoom;
    const halfH = camera.height / 2 / camera.zoom;
    for (let x = Math.ceil((camera.x - halfW) / step) * step; x <= camera.x + halfW; x += step) {
      const at = camera.width / 2 + (x - camera.x) * camera.zoom;
      g.moveTo(at, 0);
      g.lineTo(at, camera.height);
    }
    for (let y = Math.ceil((camera.y - halfH) / step) * step; y <= camera.y + halfH; y += step) {
      const at = camera.height / 2 + (y - camera.y) * camera.zoom;
      g.moveTo(0, at);
      g.lineTo(camera.width, at);
    }
    g.stroke();
  }

  /** drawStars draws stars farther away than the arena, which move more slowly. */
  private drawStars(): void {
    const { g, camera } = this;
    const cell = 180;
    const depth = 0.4;
    const offX = camera.x * camera.zoom * depth;
    const offY = camera.y * camera.zoom * depth;
    g.fillStyle = theme.star;
    for (let cx = Math.floor(offX / cell); cx * cell < offX + camera.width; cx++) {
      for (let cy = Math.floor(offY / cell); cy * cell < offY + camera.height; cy++) {
        const h = hash(cx * 7919 + cy * 104729);
        const x = cx * cell + (h & 0xff) * (cell / 256) - offX;
        const y = cy * cell + ((h >>> 8) & 0xff) * (cell / 256) - offY;
        const r = 0.5 + ((h >>> 16) & 3) * 0.28;
        g.globalAlpha = 0.25 + ((h >>> 18) & 7) * 0.09;
        g.fillRect(x, y, r * 2, r * 2);
      }
    }
    g.globalAlpha = 1;
  }

  /** place moves the origin to a position of the arena, in its units, and rotates it. */
  private place(x: number, y: number, heading: number): void {
    const { camera, ratio } = this;
    const z = camera.zoom * ratio;
    const c = Math.cos(heading) * z;
    const s = Math.sin(heading) * z;
    this.g.setTransform(c, s, -s, c, camera.left(x) * ratio, camera.top(y) * ratio);
  }

  /** flat resets the unit to pixels of the page. */
  private flat(): void {
    this.g.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
  }

  rock(id: number, x: number, y: number, radius: number): void {
    if (!this.camera.sees(x, y, radius * 1.3)) return;
    const { g } = this;
    let path = this.rocks.get(id);
    if (!path) {
      if (this.rocks.size > 4096) this.rocks.clear(); // Ids of rocks that despawned long ago.
      path = rockPath(id, radius);
      this.rocks.set(id, path);
    }
    this.place(x, y, 0);
    g.fillStyle = theme.rock;
    g.fill(path);
    g.strokeStyle = theme.rockEdge;
    g.lineWidth = 1.5;
    g.stroke(path);
  }

  pickup(id: number, x: number, y: number, shield: boolean): void {
    if (!this.camera.sees(x, y, 40)) return;
    const { g } = this;
    const beat = 1 + 0.1 * Math.sin(this.time * 3 + id);
    this.place(x, y, 0);
    g.strokeStyle = g.fillStyle = shield ? theme.shieldPickup : theme.repair;
    g.globalAlpha = 0.14;
    g.beginPath();
    g.arc(0, 0, 19 * beat, 0, turn);
    g.fill();
    g.globalAlpha = 0.9;
    g.lineWidth = 2.2;
    g.beginPath();
    g.arc(0, 0, 12 * beat, 0, turn);
    g.stroke();
    if (shield) {
      g.beginPath();
      g.arc(0, 0, 5, 0, turn);
      g.fill();
    } else {
      g.fillRect(-6, -1.6, 12, 3.2);
      g.fillRect(-1.6, -6, 3.2, 12);
    }
    g.globalAlpha = 1;
  }

  ship(id: number, s: ShipLook): void {
    if (!this.camera.sees(s.x, s.y, 60)) return;
    const { g } = this;
    const gone = s.hull === 0;
    this.place(s.x, s.y, s.heading);
    g.globalAlpha = gone ? 0.35 : 1;
    if (s.thrust && !gone) {
      const flicker = 0.8 + 0.2 * Math.sin(this.time * 40 + id);
      g.globalAlpha = flicker;
      g.fillStyle = theme.flame;
      g.fill(this.flame);
      g.globalAlpha = 1;
    }
    g.fillStyle = s.own ? theme.own : theme.other;
    g.fill(this.hull);
    g.lineWidth = 1.3;
    g.strokeStyle = s.own ? "#fff0d6" : theme.otherEdge;
    g.stroke(this.hull);
    if (s.shielded) {
      g.strokeStyle = theme.shield;
      g.globalAlpha = 0.55 + 0.25 * Math.sin(this.time * 6);
      g.lineWidth = 2;
      g.beginPath();
      g.arc(0, 0, shipRadius + 9, 0, turn);
      g.stroke();
    }
    this.flat();
    g.globalAlpha = 1;
    if (!s.own) this.label(s);
    if (!gone) this.pips(s);
  }

  private label(s: ShipLook): void {
    const { g, camera } = this;
    if (camera.zoom < 0.42) return; // They would only cover each other.
    g.font = "11px system-ui, sans-serif";
    g.textAlign = "center";
    g.fillStyle = theme.name;
    g.fillText(s.name, camera.left(s.x), camera.top(s.y) + 30 * Math.max(camera.zoom, 0.8));
  }

  /** pips shows the number of hits that a ship survives. */
  private pips(s: ShipLook): void {
    const { g, camera } = this;
    if (camera.zoom < 0.42) return;
    const y = camera.top(s.y) - 25 * Math.max(camera.zoom, 0.8);
    const x = camera.left(s.x) - (s.hull - 1) * 3.5;
    g.fillStyle = s.own ? theme.own : theme.other;
    g.globalAlpha = 0.85;
    for (let i = 0; i < s.hull; i++) g.fillRect(x + i * 7 - 2.5, y, 5, 2.5);
    g.globalAlpha = 1;
  }

  /** beam draws a shot: left is the remaining share of its time, 1 to 0. */
  beam(x: number, y: number, heading: number, left: number, own: boolean): void {
    if (!this.camera.sees(x, y, shotRange)) return;
    const { g } = this;
    this.place(x, y, heading);
    g.lineCap = "round";
    g.strokeStyle = own ? theme.beam : theme.beamOther;
    g.globalAlpha = 0.18 * left;
    g.lineWidth = 7;
    this.line(shipRadius, shotRange);
    g.globalAlpha = 0.85 * left;
    g.lineWidth = 1.6;
    this.line(shipRadius, shotRange);
    g.globalAlpha = 1;
  }

  private line(from: number, to: number): void {
    this.g.beginPath();
    this.g.moveTo(from, 0);
    this.g.lineTo(to, 0);
    this.g.stroke();
  }

  /** burst draws the explosion of a ship: part runs from 0 to 1. */
  burst(x: number, y: number, part: number, own: boolean): void {
    if (!this.camera.sees(x, y, 120)) return;
    const { g } = this;
    this.place(x, y, 0);
    g.strokeStyle = own ? theme.own : theme.flame;
    g.globalAlpha = (1 - part) * 0.8;
    g.lineWidth = 3 * (1 - part) + 0.5;
    g.beginPath();
    g.arc(0, 0, 12 + part * 52, 0, turn);
    g.stroke();
    g.beginPath();
    for (let i = 0; i < 9; i++) {
      const at = (i / 9) * turn + x;
      const from = 8 + part * 40;
      g.moveTo(Math.cos(at) * from, Math.sin(at) * from);
      g.lineTo(Math.cos(at) * (from + 10 * (1 - part)), Math.sin(at) * (from + 10 * (1 - part)));
    }
    g.stroke();
    g.globalAlpha = 1;
  }

  /** ghost draws the outline of a ship at one of its three positions. */
  ghost(x: number, y: number, heading: number, colour: string): void {
    if (!this.camera.sees(x, y, 60)) return;
    const { g } = this;
    this.place(x, y, heading);
    g.strokeStyle = colour;
    g.lineWidth = 1.6;
    g.setLineDash([4, 3]);
    g.stroke(this.hull);
    g.setLineDash([]);
  }

  /** map draws the frame of the small map in the lower right corner. Then dot draws into it. */
  map(): void {
    const { g, camera } = this;
    this.flat();
    const side = this.mapSide();
    const left = camera.width - side - 16;
    const top = camera.height - side - 16;
    g.fillStyle = "rgba(10, 15, 27, 0.72)";
    g.strokeStyle = "rgba(148, 170, 214, 0.2)";
    g.lineWidth = 1;
    g.beginPath();
    g.roundRect(left, top, side, side, 8);
    g.fill();
    g.stroke();
    const w = (camera.width / camera.zoom / size) * side;
    const h = (camera.height / camera.zoom / size) * side;
    g.save();
    g.clip();
    g.strokeStyle = "rgba(190, 205, 232, 0.28)";
    const x = left + (camera.x / size) * side;
    const y = top + (camera.y / size) * side;
    for (let dx = -side; dx <= side; dx += side) {
      for (let dy = -side; dy <= side; dy += side) g.strokeRect(x + dx - w / 2, y + dy - h / 2, w, h);
    }
    g.restore();
  }

  dot(x: number, y: number, own: boolean): void {
    const { g, camera } = this;
    const side = this.mapSide();
    const r = own ? 3 : 1.4;
    g.fillStyle = own ? theme.own : theme.other;
    g.globalAlpha = own ? 1 : 0.75;
    g.fillRect(camera.width - side - 16 + (wrap(x) / size) * side - r / 2, camera.height - side - 16 + (wrap(y) / size) * side - r / 2, r, r);
    g.globalAlpha = 1;
  }

  private mapSide(): number {
    return Math.round(Math.max(84, Math.min(168, Math.min(this.camera.width, this.camera.height) * 0.22)));
  }
}

function shipPath(): Path2D {
  const p = new Path2D();
  p.moveTo(shipRadius + 2, 0);
  p.lineTo(-shipRadius + 2, shipRadius * 0.78);
  p.lineTo(-shipRadius * 0.5, 0);
  p.lineTo(-shipRadius + 2, -shipRadius * 0.78);
  p.closePath();
  return p;
}

function flamePath(): Path2D {
  const p = new Path2D();
  p.moveTo(-shipRadius * 0.62, shipRadius * 0.34);
  p.lineTo(-shipRadius * 1.75, 0);
  p.lineTo(-shipRadius * 0.62, -shipRadius * 0.34);
  p.closePath();
  return p;
}

/** rockPath makes the shape of a rock: always the same for an id. */
function rockPath(id: number, radius: number): Path2D {
  const p = new Path2D();
  const corners = 9;
  for (let i = 0; i < corners; i++) {
    const h = hash(id * 31 + i);
    const r = radius * (0.86 + ((h & 0xff) / 255) * 0.26);
    const at = ((i + ((h >>> 8) & 0xff) / 640) / corners) * turn;
    if (i === 0) p.moveTo(Math.cos(at) * r, Math.sin(at) * r);
    else p.lineTo(Math.cos(at) * r, Math.sin(at) * r);
  }
  p.closePath();
  return p;
}

/** hash mixes the bits of a number. */
function hash(n: number): number {
  let h = Math.imul(n ^ (n >>> 15), 0x2c1b3c6d);
  h = Math.imul(h ^ (h >>> 12), 0x297a2d39);
  return (h ^ (h >>> 15)) >>> 0;
}
