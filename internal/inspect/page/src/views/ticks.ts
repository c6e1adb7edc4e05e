import { get } from "../api.js";
import { Canvas, color, h, text } from "../dom.js";
import { bytes, count, ms, time } from "../format.js";
import { flame } from "../flame.js";
import { trace } from "../trace.js";
import { Table } from "../table.js";
import type { Cause, Overview, Tick, Ticks, Traces } from "../types.js";
import type { Kind } from "../view.js";
import { takePast } from "./recording.js";

/** The number of ticks in the strip, as in the server. */
const shown = 600;

/** causes explains the colors of slow and late ticks. */
export const causes: Record<Cause, [string, string]> = {
  "": ["on time", "good"],
  system: ["one system took at least half of it", "system"],
  stage: ["many systems together took at least half of it", "stage"],
  gc: ["the garbage collector worked meanwhile", "gc"],
  behind: ["late because the tick before had not ended", "behind"],
  host: ["the process did not run: other processes or the host", "host"],
};

/** loud reports whether the messages of one client took a large part of a tick. */
function loud(t: Tick): boolean {
  return t.sender.client > 0 && t.sender.cost_ns >= t.duration_ns / 4;
}

/** verdict says in a line why a tick was slow. */
export function verdict(t: Tick, budget: number): string {
  const slow = t.duration_ns > budget;
  const size = slow ? `took ${time(t.duration_ns)} of ${time(budget)}` : t.cause ? `began ${time(t.lateness_ns)} late` : `took ${time(t.duration_ns)}, on time`;
  const sender = loud(t) ? `, above all for the method ${t.sender.method} of client ${t.sender.client} (${time(t.sender.cost_ns)})` : "";
  switch (t.cause) {
    case "system": return `${size}: the system ${t.blame.name} took ${time(t.blame.cost_ns)} at ${t.blame.stage}${sender}`;
    case "stage": return `${size}: many systems, the longest is ${t.blame.name} with ${time(t.blame.cost_ns)}${sender}`;
    case "gc": return `${size}: the garbage collector used ${time(t.gc.cpu_ns)} of CPU time`;
    case "behind": return `${size}, because the tick before had not ended`;
    case "host": return `${size}: the process did not run, no system used that time`;
    default: return size;
  }
}

export const ticks: Kind = {
  name: "ticks",
  title: "Ticks",
  make(root, page) {
    let list: Tick[] = [];
    let budget = 1e9 / 60;
    let paused = false;
    let chosen: Tick | undefined = undefined;
    let traces: Traces | undefined;
    const wanted = Number(page.parameter("tick") ?? 0);
    const pause = h("button", { type: "button", title: "Hold the strip still (space)", click: () => hold(!paused) }, "pause");
    const save = h("button", { type: "button", title: "The ticks as a Chrome trace, which ui.perfetto.dev opens", click: () => trace(list, page.room) }, "save trace");
    const past = h("button", { type: "button", hidden: true, title: "States, changes and messages of the past ticks, with a scrubber", click: () => void takePast(page, chosen?.tick) });
    const tip = h("div", { class: "tip" });
    const strip = new Canvas(() => draw());
    const title = h("h2", {}, "Click a tick");
    const facts = h("p", { class: "soft" }, "A bar is a tick: its height is its duration, the line is the period. Below it is its lateness. ← and → step, space holds the strip.");
    const detail = h("div", { class: "detail" });
    const legend = h("p", { class: "legend" }, ...Object.values(causes).map(([name, c]) => h("span", {}, h("i", { style: `background:var(--${c})` }), name)));
    const worst = new Table<Tick>(
      [
        { title: "tick", show: (t) => count(t.tick), order: (t) => t.tick },
        { title: "ms", show: (t) => ms(t.duration_ns), order: (t) => t.duration_ns, warn: (t) => t.duration_ns > budget },
        { title: "late ms", show: (t) => ms(t.lateness_ns), order: (t) => t.lateness_ns },
        { title: "cause", left: true, show: (t) => t.cause || "–", order: (t) => t.cause },
        { title: "system", left: true, show: (t) => t.blame.name, order: (t) => t.blame.name },
        { title: "client", show: (t) => (loud(t) ? String(t.sender.client) : "–"), hint: "the client whose messages took at least a quarter of the tick", order: (t) => (loud(t) ? t.sender.client : 0) },
      ],
      { key: (t) => String(t.tick), sort: 1, up: false, open: (t) => { hold(true); choose(t); }, empty: "no tick has been recorded yet" },
    );
    root.append(
      h("section", {}, h("div", { class: "bar" }, h("h2", {}, "The last ten seconds"), pause, save, past, h("span", { class: "grow" }), tip), h("div", { class: "strip" }, strip.element), legend),
      h("div", { class: "columns wide" },
        h("section", {}, title, facts, detail),
        h("section", {}, h("h2", {}, "The slowest of the last hour"), worst.element)),
    );

    function hold(on: boolean): void {
      paused = on;
      text(pause, on ? "go on" : "pause");
      pause.classList.toggle("on", on);
    }

    function choose(t: Tick): void {
      chosen = t;
      worst.chosen = String(t.tick);
      page.note({ tick: t.tick });
      text(title, `Tick ${count(t.tick)} ${verdict(t, budget)}`);
      const waiting = t.queues.reduce((a, b) => a + b, 0);
      const list = [
        `${count(t.clients)} clients`, `${count(t.arrivals)} arrivals`, `${t.fixed_steps} fixed ${t.fixed_steps === 1 ? "step" : "steps"}`,
        waiting && `${count(waiting)} messages waited after it`, t.work && `${count(t.work)} calls of Go under way`, t.overload && `overload level ${t.overload}`,
        (t.gc.cycles || t.gc.cpu_ns >= 1000) && `the garbage collector used ${time(t.gc.cpu_ns)} of CPU time and paused for ${time(t.gc.pause_ns)}`, t.dropped && `${count(t.dropped)} ticks were dropped before it`,
      ];
      facts.replaceChildren(`${list.filter(Boolean).join(", ")}. `,
        ...(t.sender.client ? [h("a", { href: `#clients/client=${t.sender.client}` }, `Client ${t.sender.client}`), ` sent the messages that took the most time: ${time(t.sender.cost_ns)}, above all of the method ${t.sender.method}.`] : []), ...traced(t),
      );
      detail.replaceChildren(flame(t, budget, (name) => page.open("loop", { system: name })));
      draw();
    }

    /** traced returns a line about the execution trace that has a tick. */
    function traced(t: Tick): (Node | string)[] {
      const file = traces?.room === page.room ? traces.traces.find((f) => f.tick >= t.tick && (f.tick - t.tick) * budget < traces!.covers_ns) : undefined;
      if (!file) return [];
      const link = page.write ? h("a", { href: `/api/traces/file?tick=${file.tick}`, download: file.name }, file.name) : h("b", {}, file.name);
      return [" It is in the execution trace ", link, `, ${bytes(file.bytes)}, for go tool trace.`];
    }

    function draw(): void {
      const c = strip.clear();
      if (strip.width === 0) return;
      const step = strip.width / shown, base = strip.height * 0.72, top = base - 8;
      const scale = top / Math.max(2 * budget, Math.min(6 * budget, Math.max(0, ...list.map((t) => t.duration_ns))));
      const colors = Object.fromEntries(Object.entries(causes).map(([k, [, name]]) => [k, color(name)]));
      const soft = color("soft");
      list.forEach((t, i) => {
        const x = strip.width - (list.length - i) * step, height = Math.min(Math.max(t.duration_ns * scale, 1), top);
        c.fillStyle = colors[t.cause]!;
        c.fillRect(x, base - height, Math.max(step - 0.4, 0.8), height);
        c.fillStyle = t.lateness_ns > budget / 4 ? colors[t.cause]! : soft;
        c.globalAlpha = 0.65;
        c.fillRect(x, base + 2, Math.max(step - 0.4, 0.8), Math.min(t.lateness_ns * scale, strip.height - base - 2));
        c.globalAlpha = 1;
        if (t === chosen || t.tick === chosen?.tick) {
          c.strokeStyle = color("ink");
          c.strokeRect(x - 1.5, 1, step + 3, strip.height - 2);
        }
      });
      c.strokeStyle = color("bad");
      c.setLineDash([5, 4]);
      c.beginPath();
      c.moveTo(0, base - budget * scale);
      c.lineTo(strip.width, base - budget * scale);
      c.stroke();
      c.setLineDash([]);
      c.fillStyle = soft;
      c.font = "11px system-ui";
      const panel = color("panel");
      for (const [name, y] of [[`period ${ms(budget)} ms`, base - budget * scale - 5], ["lateness", strip.height - 5]] as const) {
        c.fillStyle = panel;
        c.fillRect(0, y - 10, c.measureText(name).width + 8, 14);
        c.fillStyle = soft;
        c.fillText(name, 4, y);
      }
    }

    /** at returns the tick at a position of the mouse: the longest within three pixels, because a bar is thin. */
    function at(e: MouseEvent): Tick | undefined {
      const index = (x: number) => Math.max(list.length - Math.ceil((strip.width - x) / (strip.width / shown)), 0);
      return list.slice(index(e.offsetX - 3), index(e.offsetX + 3) + 1).reduce<Tick | undefined>((most, t) => (most && most.duration_ns >= t.duration_ns ? most : t), undefined);
    }
    strip.element.addEventListener("mousemove", (e) => { const t = at(e); if (t) text(tip, `tick ${count(t.tick)}: ${verdict(t, budget)}`); });
    strip.element.addEventListener("mouseleave", () => text(tip, ""));
    strip.element.addEventListener("click", (e) => { const t = at(e); if (t) { hold(true); choose(t); } });

    async function slowest(): Promise<void> {
      try {
        const all = await get<Ticks>("/ticks/slow", page.room ? { room: page.room } : {});
        worst.update(all.ticks);
        const known = traces?.traces.length ?? 0;
        traces = await get<Traces>("/api/traces");
        if (chosen && traces.traces.length !== known) choose(chosen);
        const t = all.ticks.find((x) => x.tick === wanted);
        if (t && !chosen) choose(t);
        if (wanted && !chosen && list.length > 0) text(title, `Tick ${count(wanted)} is no longer kept: click another one`);
      } catch (e) {
        page.say((e as Error).message, true);
      }
    }
    void slowest();
    const again = window.setInterval(() => void slowest(), 5000);
    return {
      topics: () => [["topic", "ticks"]],
      end() { clearInterval(again); strip.end(); },
      key(key) {
        if (key === " ") hold(!paused);
        else if (key === "j" || key === "k") worst.move(key === "j" ? 1 : -1);
        else if ((key === "ArrowLeft" || key === "ArrowRight") && list.length > 0) {
          const i = list.findIndex((t) => t.tick === chosen?.tick), by = key === "ArrowLeft" ? -1 : 1;
          hold(true);
          choose(list[i < 0 ? list.length - 1 : Math.min(Math.max(i + by, 0), list.length - 1)]!);
        } else return false;
        return true;
      },
      on(topic, data) {
        if (topic === "overview") {
          const ring = (data as Overview).ring_ns;
          past.hidden = !ring;
          text(past, `the last ${Math.round(ring / 1e9)} s`);
        }
        if (topic !== "ticks" || paused) return;
        const r = data as Ticks;
        budget = r.budget_ns;
        const last = list[list.length - 1]?.tick ?? 0;
        if (r.ticks[0] && r.ticks[0].tick <= last) list = []; // The stream has begun again.
        list = [...list, ...r.ticks].slice(-shown);
        const t = list.find((x) => x.tick === wanted);
        if (t && !chosen) choose(t);
        draw();
      },
    };
  },
};
