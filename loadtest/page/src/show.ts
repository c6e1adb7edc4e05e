// Figures for people: "–" is an unknown one.
import { bytes, count, digits, percent } from "../../../internal/inspect/page/src/format.js";
import type { Figure } from "./result.js";

/** show formats a figure in a unit of a threshold. */
export function show(x: Figure | undefined, unit: string): string {
  if (x === null || x === undefined) return "–";
  switch (unit) {
    case "B": return bytes(x);
    case "%": return percent(x);
    case "": return Number.isInteger(x) ? count(x) : digits(x);
  }
  return `${digits(x)} ${unit}`;
}

/** ms formats milliseconds for a column. */
export function ms(x: Figure | undefined): string {
  return show(x, "ms");
}

/** share formats a part of a whole. */
export function share(part: Figure, of: Figure): string {
  return part === null || of === null || of === 0 ? "–" : percent(part / of);
}

/** span formats seconds since the start of a run. */
export function span(s: number): string {
  if (s < 120) return `${Math.round(s * 10) / 10} s`;
  const two = (n: number) => String(Math.floor(n)).padStart(2, "0");
  return s < 3600 ? `${Math.floor(s / 60)}:${two(s % 60)}` : `${Math.floor(s / 3600)}:${two((s % 3600) / 60)} h`;
}
