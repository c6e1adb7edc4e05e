import { Canvas, color, h, text } from "./dom.js";
import { bytes } from "./format.js";

/** Leaf is a box of a treemap. */
export interface Leaf {
  group: string;
  name: string;
  size: number;
}

interface Box extends Leaf {
  x: number;
  y: number;
  w: number;
  h: number;
}

/** squarify places boxes with areas in proportion to their sizes, near squares, into a rectangle (Bruls, Huizing, van Wijk: Squarified Treemaps, 2000). */
export function squarify<T extends { size: number }>(items: T[], x: number, y: number, w: number, height: number): (T & { x: number; y: number; w: number; h: number })[] {
  const all = items.filter((i) => i.size > 0).sort((a, b) => b.size - a.size);
  const out: (T & { x: number; y: number; w: number; h: number })[] = [];
  let rest = all.reduce((n, i) => n + i.size, 0);
  for (let at = 0; at < all.length; ) {
    const side = Math.min(w, height), area = w * height;
    let row = 0, sum = 0, worst = Infinity;
    for (; at + row < all.length; row++) {
      const next = sum + all[at + row]!.size;
      const thick = ((next / rest) * area) / side;
      const ratio = Math.max(...[all[at]!, all[at + row]!].map((i) => { const length = ((i.size / rest) * area) / thick; return Math.max(thick / length, length / thick); }));
      if (ratio > worst) break;
      [sum, worst] = [next, ratio];
    }
    const thick = ((sum / rest) * area) / side;
    let offset = 0;
    for (const i of all.slice(at, at + row)) {
      const length = (i.size / sum) * side;
      out.push(w < height ? { ...i, x: x + offset, y, w: length, h: thick } : { ...i, x, y: y + offset, w: thick, h: length });
      offset += length;
    }
    if (w < height) { y += thick; height -= thick; } else { x += thick; w -= thick; }
    rest -= sum;
    at += row;
  }
  return out;
}

/** Treemap draws groups of leaves. */
export class Treemap {
  readonly element: HTMLElement;
  private readonly canvas = new Canvas(() => this.draw());
  private readonly tip = h("div", { class: "tip" });
  private leaves: Leaf[] = [];
  private boxes: Box[] = [];

  constructor(say: (l: Leaf) => string) {
    this.element = h("div", { class: "treemap" }, this.canvas.element, this.tip);
    this.canvas.element.addEventListener("mousemove", (e) => {
      const box = this.boxes.find((b) => e.offsetX >= b.x && e.offsetX < b.x + b.w && e.offsetY >= b.y && e.offsetY < b.y + b.h);
      text(this.tip, box ? say(box) : "");
    });
  }

  update(leaves: Leaf[]): void {
    this.leaves = leaves;
    this.draw();
  }

  private draw(): void {
    const c = this.canvas.clear();
    const groups = [...new Set(this.leaves.map((l) => l.group))].map((group) => {
      const members = this.leaves.filter((l) => l.group === group);
      return { group, members, size: members.reduce((n, l) => n + l.size, 0) };
    });
    const colors = ["accent", "good", "stage", "gc", "system", "behind"].map(color);
    const names = groups.map((g) => g.group).sort();
    this.boxes = [];
    c.font = "12px system-ui";
    c.textBaseline = "top";
    for (const g of squarify(groups, 0, 0, this.canvas.width, this.canvas.height)) {
      const head = g.h > 40 && g.w > 60 ? 17 : 0;
      c.fillStyle = color("ink");
      if (head) c.fillText(clip(c, `${g.group} ${bytes(g.size)}/s`, g.w - 6), g.x + 3, g.y + 3);
      for (const b of squarify(g.members, g.x, g.y + head, g.w, g.h - head)) {
        this.boxes.push(b);
        c.globalAlpha = b.name ? 0.55 : 0.22;
        c.fillStyle = colors[names.indexOf(g.group) % colors.length]!;
        c.fillRect(b.x + 1, b.y + 1, Math.max(b.w - 2, 1), Math.max(b.h - 2, 1));
        c.globalAlpha = 1;
        c.fillStyle = color("ink");
        if (b.w > 44 && b.h > 18) c.fillText(clip(c, b.name || "heads", b.w - 10), b.x + 5, b.y + 4);
      }
    }
  }

  end(): void {
    this.canvas.end();
  }
}

/** clip cuts a text to a width. */
function clip(c: CanvasRenderingContext2D, s: string, width: number): string {
  while (s.length > 1 && c.measureText(s).width > width) s = s.slice(0, -2) + "…";
  return s;
}
