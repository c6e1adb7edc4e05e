import { stages } from "./flame.js";
import type { Tick } from "./types.js";

/**
 * events returns ticks in Chrome's trace format, in microseconds of the server's clock, by time. A slice is within that of
 * its stage or tick, which comes first. Lateness is a counter: the times from the deadlines of late ticks overlap.
 */
export function events(ticks: Tick[]): object[] {
  const all: { ts: number }[] = [];
  for (const t of ticks) {
    const slice = (name: string, cat: string, from: number, to: number, args: object = {}) =>
      all.push({ name, cat, ph: "X", ts: from / 1000, dur: Math.max(to - from, 0) / 1000, pid: 1, tid: 1, args } as { ts: number });
    const end = t.start_ns + t.duration_ns;
    all.push({ name: "lateness", cat: "lateness", ph: "C", ts: t.start_ns / 1000, pid: 1, tid: 1, args: { ms: t.lateness_ns / 1e6 } } as { ts: number });
    slice(`tick ${t.tick}`, "tick", t.start_ns, end, { cause: t.cause, lateness_ns: t.lateness_ns, clients: t.clients, arrivals: t.arrivals, sender: t.sender, gc: t.gc });
    let at = t.start_ns;
    stages.forEach((stage, i) => {
      const until = Math.min(at + (t.stages_ns[i] ?? 0), end);
      if (until > at) slice(stage, "stage", at, until);
      let inside = at;
      for (const s of t.systems) {
        if (s.stage !== stage) continue;
        const to = Math.min(inside + s.cost_ns, until);
        slice(s.name, "system", inside, to, { runs: s.runs });
        inside = to;
      }
      at = until;
    });
  }
  return all.sort((a, b) => a.ts - b.ts);
}

/** trace saves ticks as a file. */
export function trace(ticks: Tick[], room: string): void {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([JSON.stringify({ traceEvents: events(ticks) })], { type: "application/json" }));
  a.download = `ticks-${room || "default"}-${ticks[ticks.length - 1]?.tick ?? 0}.json`;
  a.click();
  URL.revokeObjectURL(a.href);
}
