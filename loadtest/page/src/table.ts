// Tables of figures, with a column or a row for each run.
import { h, type Child } from "../../../internal/inspect/page/src/dom.js";
import { digits } from "../../../internal/inspect/page/src/format.js";
import type { Result, Run, Spread } from "./result.js";

/** cell is a text, and a class that judges it. */
export type Cell = string | { text: string; kind: string };

/** Row is a figure of each run, with its name. */
export type Row = [string, (r: Result) => Cell];

/** two puts parts beside each other, where there is room. */
export function two(...parts: HTMLElement[]): HTMLElement {
  return h("div", { class: "two" }, ...parts);
}

/** stack puts parts below each other, in one half of two. */
export function stack(...parts: HTMLElement[]): HTMLElement {
  return h("div", { class: "stack" }, ...parts);
}

/** table makes a table. The first cell of a row is its name. */
export function table(head: Child[], rows: Child[][], left: number[] = []): HTMLElement {
  const side = (i: number) => (left.includes(i) ? "left" : undefined);
  return h("div", { class: "scroll" }, h("table", {},
    head.length > 0 && h("thead", {}, h("tr", {}, ...head.map((t, i) => h("th", { class: side(i) }, t)))),
    h("tbody", {}, ...rows.map((r) => h("tr", {}, ...r.map((c, i) => (i === 0 ? h("th", { scope: "row", class: side(i) }, c) : h("td", { class: side(i) }, c))))))));
}

/** runName names a run in its color. */
export function runName(run: Run, i: number): HTMLElement {
  return h("span", { class: `run r${i}` }, run.name);
}

/** facts makes a table of figures with a column for each run. */
export function facts(runs: Run[], ...rows: Row[]): HTMLElement {
  const cell = (c: Cell) => (typeof c === "string" ? c : h("span", { class: c.kind }, c.text));
  return table(runs.length > 1 ? ["", ...runs.map(runName)] : [], rows.map(([name, of]) => [name, ...runs.map((r) => cell(of(r.result)))]));
}

/** spreads makes a table of distributions in milliseconds, with a row for each distribution of each run. */
export function spreads(runs: Run[], rows: [string, (r: Result) => Spread][]): HTMLElement {
  const some90 = rows.some(([, of]) => of(runs[0]!.result).p90 !== undefined);
  const cells = (s: Spread) => [s.p50, ...(some90 ? [s.p90] : []), s.p99, s.p999, s.max].map((x) => (x === null || x === undefined ? "–" : digits(x)));
  return table(
    ["milliseconds", "p50", ...(some90 ? ["p90"] : []), "p99", "p99.9", "max"],
    rows.flatMap(([name, of]) => runs.map((r, i) => [h("span", {}, name, runs.length > 1 && " ", runs.length > 1 && runName(r, i)), ...cells(of(r.result))])),
  );
}

/** section makes a part of the report. Its size is full, half or third of the width, where there is room. */
export function section(size: string, title: string, note: string, ...children: Child[]): HTMLElement {
  return h("section", { class: size }, h("h2", {}, title), note !== "" && h("p", { class: "note" }, note), ...children);
}

/** names lists the keys of a record of any run. */
export function names(runs: Run[], of: (r: Result) => Record<string, unknown> | null | undefined): string[] {
  return [...new Set(runs.flatMap((r) => Object.keys(of(r.result) ?? {})))].sort();
}
