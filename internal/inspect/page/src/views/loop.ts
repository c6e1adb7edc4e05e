import { h, walk } from "../dom.js";
import { count, time } from "../format.js";
import type { Loop, LoopSystem } from "../types.js";
import type { Kind } from "../view.js";

export const loop: Kind = {
  name: "loop",
  title: "Loop",
  make(root, page) {
    const wanted = page.parameter("system");
    const search = h("input", { type: "search", placeholder: "find a system ( / )", "aria-label": "Find a system", input: () => show() });
    const head = h("p", { class: "soft" });
    const body = h("div", { class: "stages" });
    const groups = h("p", { class: "groups" });
    root.append(h("section", {}, h("div", { class: "bar" }, h("h2", {}, "The systems of a tick, in the order of running"), search), head, groups), body);
    let last: Loop | undefined;
    let scrolled = false;

    /** tags lists the rules of a system. */
    function tags(s: LoopSystem): string {
      const all: string[] = [];
      if (s.periodic) all.push(`every ${time(s.period_ns ?? 0)}${s.scaled ? " of scaled time" : ""}${s.gap ? " at least" : ""}${s.catch_up ? `, catches up ${s.catch_up}` : ""}`);
      if (s.conditional) all.push(s.skipped ? "its condition is false" : s.cost ? "its condition is true" : "has a condition");
      if (s.once) all.push("once a tick");
      if (s.critical) all.push("critical");
      if (s.place && s.place !== "body") all.push(s.place);
      if (s.priority) all.push(`priority ${s.priority}`);
      if (s.after?.length) all.push(`after ${s.after.join(", ")}`);
      if (s.before?.length) all.push(`before ${s.before.join(", ")}`);
      return all.join(" · ");
    }

    /** toggle is the button that disables or enables a system or group. */
    function toggle(name: string, off: boolean): HTMLElement {
      const hint = off ? "It runs again from the next tick on, and its timers continue." : "It does not run from the next tick on, and its timers stop, until it is enabled.";
      return h("button", { class: "write", type: "button", title: hint, "data-at": name, click: () => void page.act(`/api/systems/${off ? "enable" : "disable"}`, { system: name }) }, off ? "enable" : "disable");
    }

    /** showGroups lists the groups, each with its systems and its own state. */
    function showGroups(systems: LoopSystem[]): void {
      const all = new Map<string, { systems: Set<string>; off: boolean }>();
      for (const s of systems) {
        for (const name of s.groups ?? []) {
          const g = all.get(name) ?? { systems: new Set<string>(), off: false };
          g.systems.add(s.name);
          g.off ||= s.off?.includes(name) ?? false;
          all.set(name, g);
        }
      }
      groups.hidden = all.size === 0;
      groups.replaceChildren(h("span", { class: "soft" }, "Groups: "), ...[...all].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, g]) =>
        h("span", { class: g.off ? "group off" : "group" }, h("button", { type: "button", class: "name", title: "shows its systems only", click: () => { search.value = search.value === name ? "" : name; show(); } }, name),
          ` ${count(g.systems.size)} ${g.systems.size === 1 ? "system" : "systems"}${g.off ? ", disabled" : ""} `, toggle(name, g.off))));
    }

    /** tree lists the systems of a stage in the order of running, below their groups. A group has several parts if other systems run between its members. */
    function tree(systems: LoopSystem[], stage: string, most: number): HTMLElement[] {
      let path: string[] = [];
      return systems.flatMap((s) => {
        const groups = s.groups ?? [];
        const same = groups.findIndex((g, i) => g !== path[i]), from = same < 0 ? groups.length : same;
        path = groups;
        return [...groups.slice(from).map((g, i) => h("li", { class: "part", style: `--depth:${from + i}` }, "▾ ", h("b", {}, g))), row(s, stage, most)];
      });
    }

    function row(s: LoopSystem, stage: string, most: number): HTMLElement {
      const state = s.quarantine_ticks ? `in quarantine for ${count(s.quarantine_ticks)} ticks` : s.disabled ? (s.off?.includes(s.name) ?? true) ? "disabled" : `disabled with ${s.off!.join(", ")}` : s.pending ? "changes in the next tick" : "";
      const kind = s.quarantine_ticks ? "bad" : s.disabled ? "off" : "";
      const e = h("li", { class: `system ${kind} ${s.name === wanted ? "chosen" : ""}`, tabindex: -1, "data-at": `${stage} ${s.name}`, style: `--depth:${s.groups?.length ?? 0}` },
        h("span", { class: "name" }, h("b", {}, s.name)),
        h("span", { class: "rules" }, tags(s)),
        h("span", { class: "state" }, state, s.panics ? h("em", {}, `${count(s.panics)} ${s.panics === 1 ? "panic" : "panics"}`) : ""),
        s.cost ? h("span", { class: "cost", title: `${count(s.cost.runs)} runs` }, h("i", { style: `width:${(100 * s.cost.p99_ns) / Math.max(most, 1)}%` }), h("span", {}, `${time(s.cost.mean_ns)} · p99 ${time(s.cost.p99_ns)}`)) : h("span", { class: "cost" }, "never ran"),
        h("span", { class: "actions" }, s.critical ? "" : toggle(s.name, s.off?.includes(s.name) ?? false)));
      return e;
    }

    function show(): void {
      if (!last) return;
      const most = Math.max(...last.stages.flatMap((s) => s.systems.map((x) => x.cost?.p99_ns ?? 0)));
      const focused = document.activeElement?.getAttribute("data-at");
      const ill = [...new Map(last.stages.flatMap((s) => s.systems).filter((s) => s.quarantine_ticks || s.panics || s.disabled).map((s) => [s.name, s])).values()];
      const how = (s: LoopSystem) => [s.quarantine_ticks && "in quarantine", s.panics && `${count(s.panics)} ${s.panics === 1 ? "panic" : "panics"}`, s.disabled && "disabled"].filter(Boolean).join(", ");
      head.replaceChildren(
        `Tick ${count(last.tick)}, rate ${last.rate}, fixed steps ${last.fixed_rate}${last.time_scale ? `, time scale ${last.time_scale}` : ""}. The bar is the 99th percentile of a call since the system was registered.`,
        ...(ill.length ? [h("b", { class: "alarm" }, " Look at "), ...ill.slice(0, 8).flatMap((s, i) => [i ? ", " : "", h("a", { href: `#loop/system=${encodeURIComponent(s.name)}` }, s.name), ` (${how(s)})`]), ill.length > 8 ? ", …" : ""] : []));
      showGroups(last.stages.flatMap((s) => s.systems));
      body.replaceChildren(...last.stages.map((stage) => {
        const systems = stage.systems.filter((s) => `${s.name} ${(s.groups ?? []).join(" ")}`.toLowerCase().includes(search.value.toLowerCase()));
        return h("section", {}, h("h3", {}, stage.stage || "waits for the next tick", h("small", {}, `${systems.length}`)), h("ol", {}, ...tree(systems, stage.stage, most)));
      }));
      if (focused) root.querySelector<HTMLElement>(`[data-at="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
      if (wanted && !scrolled) {
        scrolled = true;
        body.querySelector(".chosen")?.scrollIntoView({ block: "center" });
      }
    }
    return {
      topics: () => [["topic", "loop"]],
      key: (key) => walk(key, body, "li.system"),
      on(topic, data) {
        // A button under the mouse must not vanish between press and release.
        if (topic === "loop" && !root.querySelector("button:active")) { last = data as Loop; show(); }
      },
    };
  },
};
