// Checks names that a page uses: the error of a wrong name suggests the nearest right one.

import { fieldsOf } from "./adapt.js";

/** Throws for a name that is not in the list, and suggests the nearest one. */
export function known(what: string, name: string, names: Iterable<string>): void {
  const all = [...names];
  if (all.includes(name)) return;
  let near = "";
  let least = 1 + Math.floor(name.length / 3);
  for (const n of all) {
    const d = distance(name.toLowerCase(), n.toLowerCase());
    if (d <= least) {
      near = n;
      least = d - 1;
    }
  }
  throw new Error(`unknown ${what} ${JSON.stringify(name)}${near ? `: did you mean ${JSON.stringify(near)}?` : all.length > 0 ? `, only ${all.join(", ")}` : ""}`);
}

/** The number of letters to insert, remove or replace to turn a into b. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) next.push(Math.min(row[j]! + Number(a[i] !== b[j]), row[j + 1]! + 1, next[j]! + 1));
    row = next;
  }
  return row[b.length]!;
}

const parsed = new Map<string, Map<string, string>>();

/** Throws for a field that a type does not have, also in its structs and lists. */
export function fieldsKnown(type: string, value: unknown, of: string): void {
  const element = /^\[\d*\]({.*)$/s.exec(type)?.[1];
  if (element && Array.isArray(value)) for (const v of value) fieldsKnown(element, v, of);
  if (type[0] !== "{" || typeof value !== "object" || value === null) return;
  let fields = parsed.get(type);
  if (!fields) parsed.set(type, (fields = fieldsOf(type)));
  for (const [name, v] of Object.entries(value)) {
    known(`field of ${of}`, name, fields.keys());
    fieldsKnown(fields.get(name)!, v, of);
  }
}
