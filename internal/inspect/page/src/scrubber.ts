import { Canvas, color, h, text } from "./dom.js";
import { count } from "./format.js";
import type { RecordedTicks } from "./types.js";

/** The height of a lane, and of the part above the lanes, in pixels. */
const lane = 13, top = 64;

/** Scrubber draws the ticks of a recording, with a lane for each client, and chooses a tick. */
export class Scrubber {
  readonly element: HTMLElement;
  private readonly canvas = new Canvas(() => this.draw());
  private readonly tip = h("div", { class: "tip" });
  private ticks: RecordedTicks | undefined;
  private at = 0;

  constructor(choose: (tick: number) => void) {
    this.element = h("div", { class: "scrubber" }, this.canvas.element, this.tip);
    const e = this.canvas.element;
    const move = (event: PointerEvent) => { const i = this.row(event.offsetX); if (i !== undefined) choose(this.ticks!.ticks[i]!); };
    e.addEventListener("pointerdown", (event) => { e.setPointerCapture(event.pointerId); move(event); });
    e.addEventListener("pointermove", (event) => {
      if (event.buttons & 1) move(event);
      const t = this.ticks, i = this.row(event.offsetX);
      if (!t || i === undefined) return;
      const l = t.lanes[Math.floor((event.offsetY - top) / lane)];
      text(this.tip, `tick ${count(t.ticks[i]!)}${t.every > 1 ? ` and ${t.every - 1} more` : ""}: ${count(t.objects[i]!)} objects, ${count(t.changed[i]!)} changes, ${count(t.inputs[i]!)} packets of inputs, ${count(t.messages[i]!)} messages`
        + (l && event.offsetY > top ? ` · client ${l.client} ${l.subject}: ${l.inputs[i]} packets of inputs, ${l.messages[i]} messages` : ""));
    });
  }

  /** update shows other ticks. */
  update(ticks: RecordedTicks, at: number): void {
    [this.ticks, this.at] = [ticks, at];
    this.canvas.element.style.height = `${top + lane * ticks.lanes.length + 4}px`;
    this.draw();
  }

  /** move shows another chosen tick. */
  move(at: number): void {
    this.at = at;
    this.draw();
  }

  private row(x: number): number | undefined {
    const n = this.ticks?.ticks.length ?? 0;
    return n ? Math.min(Math.max(Math.floor((x / this.canvas.width) * n), 0), n - 1) : undefined;
  }

  private draw(): void {
    const c = this.canvas.clear(), t = this.ticks, { width, height } = this.canvas;
    if (!t || t.ticks.length === 0) return;
    const step = width / t.ticks.length, w = Math.max(step - 0.3, 0.7);
    const bars = (list: number[], name: string, base: number, size: number) => {
      const most = Math.max(1, ...list);
      c.fillStyle = color(name);
      list.forEach((n, i) => { if (n > 0) c.fillRect(i * step, base - Math.max((n / most) * size, 1), w, Math.max((n / most) * size, 1)); });
    };
    bars(t.changed, "behind", 40, 36);
    bars(t.messages, "accent", 52, 9);
    const marks = (list: number[], name: string) => list.forEach((n, i) => { if (n > 0) { c.fillStyle = color(name); c.fillRect(i * step, 54, Math.max(w, 2), 6); } });
    marks(t.joins, "good");
    marks(t.resumes, "stage");
    marks(t.drops, "warm");
    marks(t.leaves, "bad");
    t.lanes.forEach((l, k) => {
      const y = top + k * lane;
      const from = t.ticks.findIndex((n) => n + t.every > l.from), to = l.to ? t.ticks.findIndex((n) => n + t.every > l.to) : t.ticks.length;
      c.fillStyle = color("hover");
      c.fillRect(Math.max(from, 0) * step, y + 1, ((to < 0 ? t.ticks.length : to) - Math.max(from, 0)) * step, lane - 2);
      c.globalAlpha = 0.55;
      c.fillStyle = color("good");
      l.inputs.forEach((n, i) => { if (n > 0) c.fillRect(i * step, y + 4, w, lane - 8); });
      c.globalAlpha = 1;
      c.fillStyle = color("accent");
      const most = Math.max(1, ...l.messages);
      l.messages.forEach((n, i) => { if (n > 0) c.fillRect(i * step, y + lane - 1 - (n / most) * (lane - 6), Math.max(w, 2), (n / most) * (lane - 6)); });
      c.fillStyle = color("soft");
      c.font = "10px system-ui";
      c.fillText(`${l.client} ${l.subject}`, 3, y + lane - 3);
    });
    const i = t.ticks.findIndex((n) => n + t.every > this.at);
    c.strokeStyle = color("ink");
    c.lineWidth = 1.5;
    c.beginPath();
    c.moveTo((i + 0.5) * step, 0);
    c.lineTo((i + 0.5) * step, height);
    c.stroke();
  }

  end(): void {
    this.canvas.end();
  }
}
