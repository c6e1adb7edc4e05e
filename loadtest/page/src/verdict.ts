// The verdict of each run, and the outcome of a search.
import { h } from "../../../internal/inspect/page/src/dom.js";
import { chart, whole } from "./chart.js";
import type { Run, Search } from "./result.js";
import { ms, show } from "./show.js";
import { runName, section, table } from "./table.js";

/** verdict makes the card of a run: whether its figures mean anything, then each threshold, then the other reasons. */
export function verdict(run: Run, i: number, several: boolean): HTMLElement {
  const v = run.result.verdict;
  const [kind, word, note] = !v.valid ? ["bad invalid", "INVALID", "The load client was too slow: the figures of this run mean nothing."]
    : run.result.run.interrupted ? ["warm", "INTERRUPTED", "The figures cover the time until then."]
    : v.pass ? ["", "PASS", "Every client connected and stayed, every compared state equals the server's, and the load client kept up."]
    : ["bad", "FAIL", `Exit status ${v.exit}.`];
  const thresholds = v.thresholds ?? [];
  const reasons = (v.reasons ?? []).filter((r) => !r.startsWith("threshold "));
  return h("div", { class: `card ${kind}` },
    several && h("h2", {}, runName(run, i)),
    h("strong", {}, word),
    h("p", { class: "note" }, note),
    reasons.length > 0 && h("ul", {}, ...reasons.map((r) => h("li", {}, r))),
    thresholds.length > 0 && table(["threshold", "measured"], thresholds.map((t) => [
      h("span", { class: t.met ? "good" : "bad", title: t.met ? "met" : "not met" }, `${t.met ? "✓" : "✗"} ${t.threshold}`), show(t.value, t.unit),
    ])),
  );
}

/** search makes the parts of a search: its outcome, and its steps. */
export function search(s: Search): HTMLElement[] {
  const limit = s.saturated === "generator" && s.broken > 0;
  const [kind, word] = s.interrupted ? ["warm", `at least ${s.knee} clients`] : limit ? ["bad invalid", "INVALID"] : s.knee === 0 ? ["bad", "no number of clients"] : ["", `${s.knee} clients`];
  const note = s.interrupted ? "The search was interrupted." : limit ? `The load client is the limit, at ${s.broken} clients.`
    : s.broken === 0 ? "They meet each threshold, which is the limit of the search." : `The most that meet each threshold; at ${s.broken} one breaks. Saturated: ${s.saturated}.`;
  const steps = [...s.steps].sort((a, b) => a.clients - b.clients);
  const over = (of: (x: Search["steps"][number]) => number | null) => steps.map((x): [number, number | null] => [x.clients, of(x)]);
  return [
    h("div", { class: "cards" }, h("div", { class: `card ${kind}` }, h("strong", {}, word), h("p", { class: "note" }, note), h("ul", {}, ...s.thresholds.map((t) => h("li", {}, t))))),
    section("full", "The search", "Each step is a run. The runs below are the last that met each threshold, and the last that did not.",
      chart({ title: "by the number of clients", x: "clients", value: ms, right: (y) => `${whole(y)} cores` }, [
        { label: "snapshot age p99", color: "accent", points: over((x) => x.snapshot_age_p99_ms) },
        { label: "tick p99", color: "warm", points: over((x) => x.server_tick_p99_ms) },
        { label: "server CPU", color: "good", dash: [4, 4], right: true, points: over((x) => x.server_cpu_cores) },
      ]),
      table(["clients", "snapshots", "age p99", "tick p99", "server", "load client", "saturated", "", "not met"], s.steps.map((x) => [
        String(x.clients), show(x.snapshot_rate_hz, "Hz"), ms(x.snapshot_age_p99_ms), ms(x.server_tick_p99_ms), show(x.server_cpu_cores, "cores"), show(x.generator_cpu_cores, "cores"),
        x.saturated, h("span", { class: x.met ? "good" : "bad" }, x.met ? "✓ met" : "✗ not met"), (x.reasons ?? []).map((r) => r.replace(/^threshold /, "")).join("; "),
      ]), [8])),
  ];
}
