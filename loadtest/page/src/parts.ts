// The parts of the report between the verdict and the configuration, in the order of the page.
import { h } from "../../../internal/inspect/page/src/dom.js";
import { bytes } from "../../../internal/inspect/page/src/format.js";
import { chart, whole, type Line } from "./chart.js";
import type { Figure, Point, Process, Result, Run } from "./result.js";
import { ms, share, show, span } from "./show.js";
import { facts, names, runName, section, spreads, stack, table, two, type Cell, type Row } from "./table.js";

/** Style is the look of a line: its color in a report of one run, and its dashes. */
type Style = Pick<Line, "color" | "dash" | "right" | "fill">;

/** lines makes a line for each run. Those of several runs have the color of their run. */
function lines(runs: Run[], label: string, style: Style, of: (r: Run) => [number, Figure][]): Line[] {
  const several = runs.length > 1;
  return runs.map((r, i) => ({ ...style, label: several ? `${r.name} ${label}` : label, color: several ? `run${i}` : style.color, fill: style.fill === true && !several, points: of(r) }));
}

/** overTime makes the lines of a figure of each second; sparse figures are known every ten seconds only. */
function overTime(runs: Run[], label: string, style: Style, of: (p: Point) => Figure, sparse = false): Line[] {
  return lines(runs, label, style, (r) => r.result.series.points.map((p): [number, Figure] => [p.at_s, of(p)]).filter(([, y]) => !sparse || y !== null));
}

/** measured returns the measured time, which charts shade. Several runs have several. */
function measured(runs: Run[]): [number, number] | undefined {
  const run = runs[0]!.result.run;
  return runs.length === 1 && run.to_s > run.from_s ? [run.from_s, run.to_s] : undefined;
}

const solid: Style = { color: "warm" };
const median: Style = { color: "accent", dash: [6, 4] };
const curve = (runs: Run[], title: string, all: [string, string, Style][]) =>
  chart({ title, x: "percentile", value: ms }, all.flatMap(([label, name, style]) => lines(runs, label, style, (r) => r.curves[name] ?? [])));

/** generator tells whether the load client kept up. */
export function generator(runs: Run[]): HTMLElement {
  return section("half", "Load client", "It keeps up if 99 % of its frames are late by less than a tick, and if it sends 99 % of the planned calls.", facts(runs,
    ["kept up", (r) => (r.verdict.valid ? { text: "✓ yes", kind: "good" } : { text: "✗ no", kind: "bad" })],
    ["frames late by, p99", (r) => ms(r.generator.lateness_ms.p99)],
    ["frames late by, max", (r) => ms(r.generator.lateness_ms.max)],
    ["one tick", (r) => ms(r.run.tick_ms)],
    ["cores used", (r) => cpu(r.generator.process)],
    ["joins were on time", (r) => (r.run.on_time ? "yes" : "no")],
  ));
}

function cpu(p: Process): string {
  return p.cpu_cores === null ? "–" : `${show(p.cpu_cores, "")} of ${show(p.cores, "")} (${share(p.cpu_cores, p.cores)})`;
}

/** clients counts the players. */
export function clients(runs: Run[]): HTMLElement {
  return section("half", "Clients", "Of the whole run. Clients that the run itself ended do not count as lost.", facts(runs,
    ["wanted", (r) => show(r.clients.wanted, "")],
    ["connected", (r) => show(r.clients.connected, "")],
    ["failed", (r) => alarm(r.clients.failed)],
    ["lost", (r) => alarm(r.clients.disconnected)],
    ["state equal to the server's", (r) => (r.converged ? { text: `✓ ${r.clients.verifying} compared`, kind: "good" } : { text: "✗ no", kind: "bad" })],
    ["round trip, median", (r) => ms(r.network.rtt_ms)],
  ));
}

function alarm(n: number): Cell {
  return n > 0 ? { text: show(n, ""), kind: "bad" } : "0";
}

/** load shows players and ticks on one axis of time. */
export function load(runs: Run[]): HTMLElement {
  const budget = lines(runs.slice(0, 1), "tick budget", { color: "bad", dash: [8, 5] }, (r) => r.result.series.points.map((p) => [p.at_s, r.result.server.budget_ms]));
  const hint = measured(runs) ? " The measured time is shaded. Drag over a plot to enlarge a time, and double-click to return." : "";
  return section("full", "Players and ticks", `The tick's p99 of each second beside its budget; the number of players has the axis on the right.${hint}`,
    chart({ title: "players, tick p99 and budget against time", x: "time", value: ms, right: whole, window: measured(runs), height: 300 }, [
      ...overTime(runs, "players", { color: "good", right: true, fill: true, dash: [2, 3] }, (p) => p.clients),
      ...budget,
      ...overTime(runs, "tick p99", { color: "accent" }, (p) => p.server_tick_p99_ms),
    ]),
    two(
      spreads(runs, [["tick", (r) => r.server.tick_ms], ["tick late by", (r) => r.server.lateness_ms]]),
      facts(runs,
        ["ticks a second", (r) => show(r.server.tick_rate_hz, "Hz")],
        ["ticks over budget", (r) => show(r.server.overruns, "")],
        ["dropped ticks", (r) => show(r.server.dropped_ticks, "")],
        ["time to send a tick, p99", (r) => ms(r.server.flush_lag_p99_ms)],
      ),
    ));
}

export function snapshots(runs: Run[]): HTMLElement {
  const interval: Style = { color: "good", dash: [2, 3] };
  return section("full", "Snapshots", "Age: how old the newest applied state is at each frame of each client. Interval: the time between two snapshots of a client.",
    two(
      spreads(runs, [["interval", (r) => r.snapshots.interval_ms], ["age", (r) => r.snapshots.age_ms]]),
      facts(runs,
        ["rate per client, median", (r) => show(r.snapshots.rate_hz.p50, "Hz")],
        ["rate per client, lowest", (r) => show(r.snapshots.rate_hz.min, "Hz")],
        ["received", (r) => show(r.snapshots.received, "")],
      ),
      chart({ title: "age and interval against time", x: "time", value: ms, window: measured(runs) }, [
        ...overTime(runs, "age p50", median, (p) => p.snapshot_age_p50_ms), ...overTime(runs, "age p99", solid, (p) => p.snapshot_age_p99_ms),
        ...overTime(runs, "interval p99", interval, (p) => p.snapshot_interval_p99_ms),
      ]),
      curve(runs, "age and interval by percentile", [["age", "snapshot.age", solid], ["interval", "snapshot.interval", interval]]),
    ));
}

export function calls(runs: Run[]): HTMLElement {
  return section("full", "Calls", "Latency from the scheduled time of a call until the frame that gets its answer. A slow server is not asked less.",
    two(
      spreads(runs, [["latency", (r) => r.rpc.rtt_ms]]),
      facts(runs,
        ["sent", (r) => show(r.rpc.sent, "")],
        ["answered", (r) => `${show(r.rpc.answered, "")} (${share(r.rpc.answered, r.rpc.sent)})`],
      ),
      chart({ title: "latency against time", x: "time", value: ms, window: measured(runs) }, [
        ...overTime(runs, "p50", median, (p) => p.call_latency_p50_ms), ...overTime(runs, "p99", solid, (p) => p.call_latency_p99_ms),
      ]),
      curve(runs, "latency by percentile", [["latency", "call.latency", solid]]),
    ));
}

export function feel(runs: Run[]): HTMLElement {
  return section("third", "Feel", "Effects that players notice.", facts(runs,
    ["inputs missed", (r) => share(r.feel.inputs_missed, r.feel.inputs)],
    ["wrong predictions a minute", (r) => show(r.feel.mispredicted_per_minute, "")],
    ["of them for late inputs", (r) => show(r.feel.mispredicted_late_per_minute, "")],
    ["hits confirmed", (r) => share(r.feel.hits_confirmed, r.feel.hits)],
    ["view delay p50", (r) => ms(r.feel.view_delay_ms.p50)],
    ["view delay p99", (r) => ms(r.feel.view_delay_ms.p99)],
    ["frames without the next snapshot", (r) => show(r.feel.starved, "%")],
    ...names(runs, (r) => r.counts).map((name): Row => [`counted: ${name}`, (r) => show(r.counts?.[name], "")]),
  ));
}

export function losses(runs: Run[]): HTMLElement {
  const simulated: Row[] = runs.some((r) => r.result.simulated) ? [
    ["simulated network", (r) => r.simulated?.network ?? "–"],
    ...(["down", "up"] as const).map((way): Row => [`lost on the way ${way}`, (r) => {
      const n = r.simulated?.[way];
      return n ? `${show(n.lost ?? 0, "")} of ${show((n.lost ?? 0) + (n.passed ?? 0), "")}` : "–";
    }]),
  ] : [];
  return section("third", "Loss and choke", "Of the clients that read their state; the server counts chokes.", facts(runs,
    ["packets of state lost", (r) => show(r.network.packets_lost, "")],
    ["snapshots held back", (r) => show(r.network.snapshots_held_back, "")],
    ["chokes", (r) => show(r.network.chokes, "")],
    ...simulated,
  ));
}

export function traffic(runs: Run[]): HTMLElement {
  const perSecond = (x: Figure, unit: string) => (x === null ? "–" : `${show(x, unit)}/s`);
  return section("third", "Traffic per client", "Datagrams and stream data, as the server counts them.", facts(runs,
    ["bytes to a client", (r) => perSecond(r.network.bytes_down, "B")],
    ["bytes from a client", (r) => perSecond(r.network.bytes_up, "B")],
    ["packets to a client", (r) => perSecond(r.network.packets_down, "")],
    ["packets from a client", (r) => perSecond(r.network.packets_up, "")],
    ["snapshots to a client", (r) => perSecond(r.snapshots.bytes_per_client_per_second, "B")],
  ));
}

export function joins(runs: Run[]): HTMLElement {
  const reasons = (word: string, of: (r: Result) => Record<string, number> | undefined) =>
    names(runs, of).map((reason): Row => [`${word}: ${reason}`, (r) => show(of(r)?.[reason] ?? 0, "")]);
  return section("full", "Joins, drops and resumes", "Of the whole run.",
    two(
      stack(
        spreads(runs, [["join", (r) => r.joins.latency_ms]]),
        facts(runs,
          ["admitted", (r) => show(r.joins.admitted, "")],
          ["admitted a second", (r) => show(r.joins.per_second, "")],
          ...reasons("refused", (r) => r.joins.refused),
          ["broken connections", (r) => show(r.clients.drops, "")],
          ["of them resumed", (r) => show(r.clients.resumes, "")],
          ...reasons("lost", (r) => r.joins.ended),
        )),
      chart({ title: "joins and errors a second", x: "time", value: whole, window: measured(runs) }, [
        ...overTime(runs, "joins", { color: "accent" }, (p) => p.joins), ...overTime(runs, "errors", { color: "bad", dash: [6, 4] }, (p) => p.errors),
      ]),
    ));
}

/** worst lists the slowest ticks. */
export function worst(runs: Run[]): HTMLElement {
  const rows = runs.flatMap((run, i) => (run.result.worst_ticks ?? []).map((t) => [
    runs.length > 1 ? h("span", {}, runName(run, i), ` ${t.tick}`) : String(t.tick),
    ms(t.duration_ms), ms(t.lateness_ms), t.system || "–", t.stage || "–", ms(t.system_ms), t.cause || "–",
  ]));
  return section("full", "Worst ticks", "The slowest ticks of the measured time, with the slowest system of each.",
    rows.length > 0 ? table(["tick", "duration", "late by", "system", "stage", "of it", "cause"], rows, [3, 4, 6]) : h("p", {}, "–"));
}

export function processes(runs: Run[]): HTMLElement {
  const of = (side: string, p: (r: Result) => Process): Row[] => [
    [`${side}: cores used`, (r) => cpu(p(r))],
    [`${side}: memory`, (r) => show(p(r).memory_bytes, "B")],
    [`${side}: goroutines`, (r) => show(p(r).goroutines, "")],
    [`${side}: garbage collections`, (r) => show(p(r).gc_cycles, "")],
    [`${side}: CPU of the collector`, (r) => show(p(r).gc_cpu_cores, "cores")],
  ];
  return section("full", "CPU, memory and garbage collection", "CPU and collections are of the measured time, memory and goroutines of its end.",
    two(
      facts(runs, ...of("server", (r) => r.server.process), ...of("load client", (r) => r.generator.process)),
      chart({ title: "memory every ten seconds", x: "time", value: bytes, window: measured(runs), height: 260 }, [
        ...overTime(runs, "server", { color: "accent" }, (p) => p.server_memory_bytes, true),
        ...overTime(runs, "load client", { color: "warm", dash: [6, 4] }, (p) => p.generator_memory_bytes, true),
      ]),
    ));
}

/** growth lists the slopes of soaks. */
export function growth(runs: Run[]): HTMLElement | undefined {
  const several = runs.length > 1;
  const rows = runs.flatMap((run, i) => (run.result.growth ?? []).map((t) => [
    several ? h("span", {}, runName(run, i), ` ${t.figure}`) : t.figure, show(t.per_hour, t.unit), `${show(t.low, t.unit)} to ${show(t.high, t.unit)}`,
    t.grows ? h("span", { class: "bad" }, "✗ grows") : t.per_hour === null ? "too few samples" : h("span", { class: "good" }, "✓ steady"),
  ]));
  return rows.length === 0 ? undefined : section("full", "Growth", "Slopes of lines through the samples of the measured time.", table(["", "an hour", "99 % confidence", ""], rows));
}

/** configuration has all that a repetition of the run needs. */
export function configuration(runs: Run[]): HTMLElement {
  const several = runs.length > 1;
  const flags = names(runs, (r) => r.run.flags);
  const of = (run: Run, name: string) => run.result.run.flags?.[name] || "–";
  const differing = flags.filter((name) => runs.some((r) => of(r, name) !== of(runs[0]!, name)));
  const revision = ({ run: { build: b } }: Result) => (b.revision === "" ? "–" : b.revision.slice(0, 12) + (b.modified ? ", modified" : ""));
  return section("full long", "Configuration", "",
    facts(runs,
      ["begin", (r) => r.run.begin.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC")],
      ["measured", (r) => `${span(r.run.from_s)} to ${span(r.run.to_s)}`],
      ["seed", (r) => String(r.run.seed)],
      ["digest of the calls", (r) => r.run.schedule || "–"],
      ["machine of the load client", ({ run: { machine: m } }) => `${m.host || "–"}, ${m.os}/${m.arch}, ${m.procs} of ${m.cores} cores`],
      ["build", ({ run: { build: b } }) => `${b.module} ${b.version || "–"}, ${b.go}`],
      ["revision", revision],
      ["tags", (r) => Object.entries(r.run.tags ?? {}).map(([name, text]) => `${name}=${text}`).join(", ") || "–"],
    ),
    ...runs.map((run, i) => h("p", { class: "text" }, several && runName(run, i), several && " ", "$ ", (run.result.run.command ?? []).map(quoted).join(" "))),
    several
      ? table(["flags that differ", ...runs.map(runName)], differing.map((name) => [name, ...runs.map((r) => of(r, name))]))
      : h("dl", { class: "flags" }, ...flags.map((name) => h("div", {}, h("dt", {}, name), h("dd", {}, of(runs[0]!, name))))));
}

/** quoted quotes a word for a shell, if it needs that. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
