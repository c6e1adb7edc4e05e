import { Canvas, color, h, text } from "./dom.js";
import { position, summary } from "./objects.js";
import type { Class, StateObject } from "./types.js";

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

  /** update draws other objects. compared marks those that the chosen client has. */
  update(classes: Class[], objects: StateObject[], chosen: string, compared: boolean): void {
    [this.classes, this.objects, this.chosen, this.compared] = [classes, objects, chosen, compared];
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
    const step = 10 ** Math.floor(Math.log10((b.right - b.left) / 2));
    c.strokeStyle = color("line");
    c.lineWidth = 1;
    c.beginPath();
    for (let x = Math.ceil(b.left / step) * step; x <= b.right; x += step) { c.moveTo(left + (x - b.left) * scale, 0); c.lineTo(left + (x - b.left) * scale, height); }
    for (let y = Math.ceil(b.top / step) * step; y <= b.bottom; y += step) { c.moveTo(0, top + (y - b.top) * scale); c.lineTo(width, top + (y - b.top) * scale); }
    c.stroke();
    const names = this.classes.filter((k) => k.map.length === 2).map((k) => k.name);
    const colors = ["accent", "behind", "system", "good", "gc", "stage"].map(color);
    this.points = list.map(({ o, p: [x, y] }) => ({ o, x: left + (x - b.left) * scale, y: top + (y - b.top) * scale }));
    for (const { o, x, y } of this.points) {
      c.fillStyle = colors[names.indexOf(o.class) % colors.length]!;
      c.globalAlpha = this.compared && !o.shown ? 0.25 : 1;
      c.beginPath();
      c.arc(x, y, o.owner ? 4 : 3, 0, 7);
      c.fill();
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
    c.fillText(`a square is ${step} units`, 6, height - 6);
    const keys = names.map((n, i) => `${n}:${i}`).join();
    if (this.legend.dataset["keys"] !== keys) {
      this.legend.dataset["keys"] = keys;
      this.legend.replaceChildren(...names.map((n, i) => h("span", {}, h("i", { style: `background:${colors[i % colors.length]}` }), n)));
    }
  }

  end(): void {
    this.canvas.end();
  }
}
