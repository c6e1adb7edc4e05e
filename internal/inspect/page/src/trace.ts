import { stages } from "./flame.js";
import type { Tick } from "./types.js";

/** events returns ticks in Chrome's trace format, in microseconds of the server's clock. */
export function events(ticks: Tick[]): object[] {
  const all: object[] = [];
  const span = (name: string, cat: string, ts: number, dur: number, tid: number, args: object = {}) =>
    all.push({ name, cat, ph: "X", ts: ts / 1000, dur: dur / 1000, pid: 1, tid, args });
  for (const t of ticks) {
    span(`tick ${t.tick}`, "tick", t.start_ns, t.duration_ns, 1, { cause: t.cause, lateness_ns: t.lateness_ns, clients: t.clients, arrivals: t.arrivals, sender: t.sender, gc: t.gc });
    let at = t.start_ns;
    stages.forEach((stage, i) => {
      const cost = t.stages_ns[i] ?? 0;
      if (cost > 0) span(stage, "stage", at, cost, 1);
      let inside = at;
      for (const s of t.systems) {
        if (s.stage !== stage) continue;
        span(s.name, "system", inside, s.cost_ns, 1, { runs: s.runs });
        inside += s.cost_ns;
      }
      at += cost;
    });
    if (t.lateness_ns > 0) span("late", "lateness", t.start_ns - t.lateness_ns, t.lateness_ns, 2);
  }
  return all;
}

/** trace saves ticks as a file. */
export function trace(ticks: Tick[], room: string): void {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([JSON.stringify({ traceEvents: events(ticks) })], { type: "application/json" }));
  a.download = `ticks-${room || "default"}-${ticks[ticks.length - 1]?.tick ?? 0}.json`;
  a.click();
  URL.revokeObjectURL(a.href);
}
