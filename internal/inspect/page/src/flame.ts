import { h } from "./dom.js";
import { percent, time } from "./format.js";
import type { Tick } from "./types.js";

/** The stages of a tick. */
export const stages = ["Initialization", "EarlyUpdate", "FixedUpdate", "PreUpdate", "Update", "PreLateUpdate", "PostLateUpdate"];

/** flame draws a tick as boxes: the tick, its stages, and their systems, in the order of running. */
export function flame(t: Tick, budget: number, open: (system: string) => void): HTMLElement {
  const total = Math.max(t.duration_ns, 1);
  const box = (name: string, cost: number, kind: string, more: string, click?: () => void) => {
    const share = cost / total;
    return h(click ? "button" : "div", {
      class: `box ${kind}`, style: `flex:${Math.max(1000 * share, 0.1)} 1 0`, title: `${name}: ${time(cost)}, ${percent(share)} of the tick${more}`, ...(click ? { click, type: "button" } : {}),
    }, share > 0.03 ? h("span", {}, name) : "", share > 0.08 ? h("small", {}, time(cost)) : "");
  };
  const columns = stages.map((stage, i) => {
    const cost = t.stages_ns[i] ?? 0;
    const systems = t.systems.filter((s) => s.stage === stage);
    const known = systems.reduce((all, s) => all + s.cost_ns, 0);
    return h("div", { class: "column", style: `flex:${Math.max((1000 * cost) / total, 2)} 1 0` },
      h("div", { class: "row" }, box(stage, cost, "stage", "")),
      h("div", { class: "row" },
        ...systems.map((s) => box(s.name, s.cost_ns, s.name === t.blame.name && s.stage === t.blame.stage ? "system blame" : "system", s.runs > 1 ? `, ${s.runs} runs` : "", () => open(s.name))),
        cost > known ? h("div", { class: "box rest", style: `flex:${(1000 * (cost - known)) / total} 1 0`, title: `other systems and netloop itself: ${time(cost - known)}` }) : ""));
  });
  const rows = [...t.systems].sort((a, b) => b.cost_ns - a.cost_ns).slice(0, 8).map((s) =>
    h("tr", { tabindex: 0, click: () => open(s.name) }, h("td", { class: "left" }, s.name), h("td", { class: "left" }, s.stage), h("td", {}, time(s.cost_ns)), h("td", {}, percent(s.cost_ns / total)), h("td", {}, String(s.runs))));
  return h("div", { class: "flame" },
    h("div", { class: "row" }, box(`tick ${t.tick}`, total, t.duration_ns > budget ? "tick over" : "tick", ` · ${percent(total / budget)} of the period`)),
    h("div", { class: "row" }, ...columns),
    h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...["system", "stage", "time", "share", "runs"].map((n, i) => h("th", { class: i < 2 ? "left" : "" }, n)))), h("tbody", {}, ...rows))));
}
