import assert from "node:assert/strict";
import { test } from "node:test";

import { events } from "./trace.js";
import type { Tick } from "./types.js";

interface Event {
  name: string;
  ph: string;
  ts: number;
  dur: number;
  pid: number;
  tid: number;
}

const tick = (n: number, more: Partial<Tick> = {}): Tick => ({
  tick: n, start_ns: 16_666_667 * n, lateness_ns: 40_000_000, duration_ns: 9_000_001, cause: "", blame: { name: "", stage: "", cost_ns: 0, runs: 0 },
  stages_ns: [0, 1_000_003, 3_000_001, 0, 4_000_001, 0, 500_000],
  systems: [{ name: "physics", stage: "FixedUpdate", cost_ns: 2_000_001, runs: 2 }, { name: "pathfinding", stage: "FixedUpdate", cost_ns: 900_001, runs: 1 }, { name: "ai", stage: "Update", cost_ns: 4_000_001, runs: 1 }],
  others: { systems: 0, cost_ns: 0 }, dropped: 0, fixed_steps: 1, overload: 0, clients: 3, arrivals: 5, queues: [], work: 0, sender: { client: 0, method: "", cost_ns: 0 }, gc: { cycles: 0, cpu_ns: 0, pause_ns: 0 }, ...more,
});

// Perfetto drops slices of a thread that overlap without one being inside the other.
test("a trace has the fields that Perfetto needs, and its slices are nested", () => {
  // The second tick's systems and stages took longer, by their own clock reads, than the tick.
  const all = events([tick(1), tick(2, { duration_ns: 8_000_000, stages_ns: [0, 0, 2_000_000, 0, 7_000_000, 0, 0] }), tick(3, { stages_ns: [], systems: [] })]) as Event[];
  const slices = all.filter((e) => e.ph === "X");
  assert.deepEqual(slices.map((e) => e.name), ["tick 1", "EarlyUpdate", "FixedUpdate", "physics", "pathfinding", "Update", "ai", "PostLateUpdate", "tick 2", "FixedUpdate", "physics", "pathfinding", "Update", "ai", "tick 3"]);
  assert.equal(all.filter((e) => e.ph === "C" && e.name === "lateness").length, 3);
  assert.equal(all.length, slices.length + 3);
  let last = -Infinity;
  for (const e of all) {
    assert.ok(e.name && Number.isFinite(e.ts) && e.pid === 1 && e.tid === 1, JSON.stringify(e));
    assert.ok(e.ts >= last, `${e.name} begins before the event before it`);
    last = e.ts;
  }
  const open: Event[] = [], end = (e: Event) => e.ts + e.dur;
  for (const e of slices) {
    assert.ok(e.dur >= 0, JSON.stringify(e));
    while (open.length && end(open.at(-1)!) <= e.ts + 1e-6) open.pop();
    const parent = open.at(-1);
    assert.ok(!parent || end(e) <= end(parent) + 1e-6, `${e.name} ends after ${parent?.name}`);
    assert.equal(open.length === 0, e.name.startsWith("tick "), `${e.name} is inside of ${parent?.name}`);
    open.push(e);
  }
});
