import type { Values } from "./types.js";

/** sum adds the values of a family. */
export function sum(list: Values[string] | undefined): number {
  return (list ?? []).reduce((all, v) => all + v.value, 0);
}

/** Rates computes how fast counters grow, between the last two answers, or over a longer time. */
export class Rates {
  private readonly kept: { at: number; values: Map<string, number> }[] = [];
  /** ready reports whether there have been two answers. */
  ready = false;

  /** Rates over a number of answers. */
  constructor(private readonly answers = 2) {}

  /** take takes an answer, and returns a function for the rates of the series with the first labels. */
  take(v: Values): (name: string, ...labels: string[]) => number {
    const values = new Map<string, number>();
    for (const [name, list] of Object.entries(v)) for (const s of list) values.set([name, ...(s.labels ?? [])].join("\n"), s.value);
    this.kept.push({ at: performance.now(), values });
    if (this.kept.length > this.answers) this.kept.shift();
    const first = this.kept[0]!, last = this.kept[this.kept.length - 1]!;
    const seconds = (last.at - first.at) / 1000;
    this.ready = seconds > 0;
    return (name, ...labels) => {
      if (seconds === 0) return 0;
      const key = [name, ...labels].join("\n");
      let grown = 0;
      for (const [k, n] of last.values) if (k === key || k.startsWith(key + "\n")) grown += n - (first.values.get(k) ?? 0);
      return Math.max(grown / seconds, 0);
    };
  }
}
