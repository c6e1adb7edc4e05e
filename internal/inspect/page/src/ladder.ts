import { h, text } from "./dom.js";
import { percent } from "./format.js";
import type { Ladder } from "./types.js";

/** The levels of overload, with their effects. */
const steps: [string, string][] = [
  ["normal", "No work is reduced."],
  ["halved", "Clients get half of the snapshots."],
  ["shedding", "Changes of objects that weigh less than 1 wait, too."],
  ["refusing", "New clients are refused, too."],
];

/** LadderPanel shows the level of overload with the measures that keep it. */
export class LadderPanel {
  readonly element: HTMLElement;
  private readonly title = h("h2", {}, "Overload");
  private readonly steps = steps.map(([name, hint]) => h("li", { title: hint }, name));
  private readonly meters = h("div", { class: "meters" });
  private readonly reason = h("p");

  constructor() {
    this.element = h("section", { class: "ladder" }, this.title, h("ol", {}, ...this.steps), this.meters, this.reason);
  }

  update(l: Ladder, rooms: number): void {
    const at = steps.findIndex(([name]) => name === l.level);
    text(this.title, rooms > 1 && at > 0 ? `Overload of the room ${l.room || "(default)"}` : "Overload");
    this.steps.forEach((e, i) => { e.className = i > at ? "" : i === 0 ? "good" : "bad"; if (i === at) e.setAttribute("aria-current", "step"); else e.removeAttribute("aria-current"); });
    this.meters.replaceChildren(...l.measures.flatMap((m) => {
      const most = 1.4 * m.raise, at = (v: number) => `${100 * Math.min(v / most, 1)}%`;
      const kind = m.now >= m.raise ? "bad" : m.now >= m.calm ? "warm" : "good";
      const hint = `In the last half second ${percent(m.now)} of the tick period. From ${percent(m.raise)} on the level rises; below ${percent(m.calm)} it falls soonest.`;
      return [
        h("span", { class: "soft" }, m.name),
        h("span", { class: "meter", title: hint }, h("i", { class: kind, style: `width:${at(m.now)}` }), h("em", { style: `left:${at(m.calm)}` }), h("em", { class: "raise", style: `left:${at(m.raise)}` })),
        h("span", { class: `value ${kind}` }, percent(m.now)),
      ];
    }));
    text(this.reason, l.text);
  }
}
