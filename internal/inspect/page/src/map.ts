import { Canvas, color, h, text } from "./dom.js";
import { position, summary } from "./objects.js";
import { cells } from "./regions.js";
import type { Class, Grid, StateObject } from "./types.js";

/** WorldMap draws the objects of classes with a position. */
export class WorldMap {
  readonly element: HTMLElement;
  private readonly canvas = new Canvas(() => this.draw());
  private readonly tip = h("div", { class: "tip" });
  private readonly legend = h("p", { class: "legend" });
  private points: { o: StateObject; x: number; y: number }[] = [];
  private classes: Class[] = [];
  private objects: StateObject[] = [];
  private bounds = { left: 0, top: 0, right: 0, bottom: 0 };
  private grids: Grid[] = [];
  private chosen = "";
  private compared = false;

  constructor(open: (id: string) => void) {
    this.element = h("div", { class: "map" }, this.canvas.element, this.legend, this.tip);
    const at = (e: MouseEvent) => {
      const near = this.points.map((p) => ({ p, d: Math.hypot(p.x - e.offsetX, p.y - e.offsetY) })).sort((a, b) => a.d - b.d)[0];
      return near && near.d < 14 ? near.p.o : undefined;
    };
    this.canvas.element.addEventListener("mousemove", (e) => {
      const o = at(e);
      text(this.tip, o ? `${o.class} ${o.id}  ${summary(this.classes.find((c) => c.name === o.class), o.values)}` : "");
    });
    this.canvas.element.addEventListener("click", (e) => { const o = at(e); if (o) open(o.id); });
  }

  /**
   * update draws other objects. compared tells apart those that the chosen client has, those that it has
   * not acknowledged yet, and those that it does not see.
   */
  update(classes: Class[], objects: StateObject[], chosen: string, compared: boolean, grids: Grid[] = []): void {
    [this.classes, this.objects, this.chosen, this.compared, this.grids] = [classes, objects, chosen, compared, grids];
    this.draw();
  }

  private draw(): void {
    const c = this.canvas.clear(), { width, height } = this.canvas;
    const list = this.objects.flatMap((o) => { const p = position(this.classes.find((k) => k.name === o.class), o); return p ? [{ o, p }] : []; });
    const b = this.bounds; // They only grow, so that the picture keeps still.
    for (const { p: [x, y] } of list) {
      if (b.left === b.right) Object.assign(b, { left: x - 1, right: x + 1, top: y - 1, bottom: y + 1 });
      [b.left, b.right, b.top, b.bottom] = [Math.min(b.left, x), Math.max(b.right, x), Math.min(b.top, y), Math.max(b.bottom, y)];
    }
    const scale = Math.min((width - 24) / (b.right - b.left), (height - 24) / (b.bottom - b.top));
    if (!Number.isFinite(scale) || width === 0) return;
    const left = (width - (b.right - b.left) * scale) / 2, top = (height - (b.bottom - b.top) * scale) / 2;
    const toX = (x: number) => left + (x - b.left) * scale, toY = (y: number) => top + (y - b.top) * scale;
    const grid = this.grids[0];
    const step = grid && grid.cell * scale >= 5 ? grid.cell : 10 ** Math.floor(Math.log10((b.right - b.left) / 2));
    for (const g of this.grids) this.region(c, g, toX, toY, scale);
    c.strokeStyle = color("line");
    c.lineWidth = 1;
    c.beginPath();
    for (let x = Math.ceil((b.left - left / scale) / step) * step; toX(x) <= width; x += step) { c.moveTo(toX(x), 0); c.lineTo(toX(x), height); }
    for (let y = Math.ceil((b.top - top / scale) / step) * step; toY(y) <= height; y += step) { c.moveTo(0, toY(y)); c.lineTo(width, toY(y)); }
    c.stroke();
    const names = this.classes.filter((k) => k.map.length === 2).map((k) => k.name);
    const colors = ["accent", "behind", "system", "good", "gc", "stage"].map(color);
    this.points = list.map(({ o, p: [x, y] }) => ({ o, x: toX(x), y: toY(y) }));
    for (const { o, x, y } of this.points) {
      const size = o.owner ? 4 : 3;
      c.fillStyle = c.strokeStyle = colors[names.indexOf(o.class) % colors.length]!;
      c.lineWidth = 1.5;
      const copy = this.compared && o.copy ? position(this.classes.find((k) => k.name === o.class), { ...o, values: o.copy }) : undefined;
      if (copy && Math.hypot(toX(copy[0]) - x, toY(copy[1]) - y) > 1) { // where the client has it
        c.globalAlpha = 0.7;
        c.beginPath();
        c.moveTo(x, y);
        c.lineTo(toX(copy[0]), toY(copy[1]));
        c.stroke();
      }
      c.globalAlpha = this.compared && !o.shown ? 0.3 : 1;
      c.beginPath();
      c.arc(x, y, size, 0, 7);
      if (this.compared && o.shown && !o.copy) c.stroke();
      else c.fill();
      if (o.id === this.chosen) {
        c.globalAlpha = 1;
        c.strokeStyle = color("ink");
        c.lineWidth = 1.5;
        c.beginPath();
        c.arc(x, y, 8, 0, 7);
        c.stroke();
      }
    }
    c.globalAlpha = 1;
    c.fillStyle = color("soft");
    c.font = "11px system-ui";
    c.fillText(grid && step === grid.cell ? `a square is a cell of the grid of ${grid.classes.join(", ")}: ${step} units` : `a square is ${step} units`, 6, height - 6);
    const entries: [string, string][] = names.map((n, i) => [`background:${colors[i % colors.length]}`, n]);
    if (this.compared) {
      const of = (f: (o: StateObject) => boolean) => list.filter(({ o }) => f(o)).length;
      const ink = color("soft");
      entries.push(
        [`background:${ink};border-radius:50%`, `has ${of((o) => o.shown === true && !!o.copy)}`],
        [`border:1.5px solid ${ink};border-radius:50%`, `not acknowledged yet ${of((o) => o.shown === true && !o.copy)}`],
        [`background:${ink};opacity:0.3;border-radius:50%`, `does not see ${of((o) => !o.shown)}`]);
      if (this.grids.some((g) => g.eyes.length > 0)) entries.push([`background:${color("accent")};opacity:0.25`, "cells in view"], [`background:${color("accent")};opacity:0.1`, "its objects stay until they leave these"]);
    }
    const keys = entries.join();
    if (this.legend.dataset["keys"] !== keys) {
      this.legend.dataset["keys"] = keys;
      this.legend.replaceChildren(...entries.map(([style, n]) => h("span", {}, h("i", { style }), n)));
    }
  }

  /** region draws the cells that a client sees in a grid, and its viewpoints. */
  private region(c: CanvasRenderingContext2D, g: Grid, toX: (x: number) => number, toY: (y: number) => number, scale: number): void {
    const side = g.cell * scale;
    c.fillStyle = color("accent");
    for (const { x, y, inside } of cells(g)) {
      c.globalAlpha = inside ? 0.2 : 0.08;
      c.fillRect(toX(x * g.cell), toY(y * g.cell), side, side);
    }
    c.globalAlpha = 1;
    c.strokeStyle = color("ink");
    c.lineWidth = 1;
    for (const eye of g.eyes) {
      const o = this.objects.find((x) => x.id === eye.object);
      const at = o && position(this.classes.find((k) => k.name === o.class), o);
      const [x, y] = at ? [toX(at[0]), toY(at[1])] : [toX((eye.cell[0] + 0.5) * g.cell), toY((eye.cell[1] + 0.5) * g.cell)];
      c.beginPath();
      for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]] as const) { c.moveTo(x + 6 * dx, y + 6 * dy); c.lineTo(x + 11 * dx, y + 11 * dy); }
      c.stroke();
    }
  }

  end(): void {
    this.canvas.end();
  }
}
