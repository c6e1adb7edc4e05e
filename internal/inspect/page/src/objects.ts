import type { Class, StateObject } from "./types.js";

/** Field is a value of an object with its name, or a struct or array of fields. */
export interface Field {
  name: string; // the last part of the path
  path: string;
  index: number; // of the leaf; -1 for a struct
  children: Field[];
}

/** fieldTree returns the fields of a class as a tree: "Pos.X" and "Pos.Y" are children of "Pos". */
export function fieldTree(c: Class): Field[] {
  const top: Field[] = [];
  c.fields.forEach((path, index) => {
    const parts = path.split(/\.|(?=\[)/);
    let level = top;
    parts.forEach((name, i) => {
      if (i === parts.length - 1) {
        level.push({ name, path, index, children: [] });
        return;
      }
      let at = level.find((f) => f.index < 0 && f.name === name);
      if (!at) level.push((at = { name, path: parts.slice(0, i + 1).join("."), index: -1, children: [] }));
      level = at.children;
    });
  });
  return top;
}

/** show formats a value. */
export function show(value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(7)));
  if (typeof value === "string") return JSON.stringify(value);
  return JSON.stringify(value);
}

/** summary returns the first values of an object in a line. */
export function summary(c: Class | undefined, values: unknown[]): string {
  if (!c) return "";
  return c.fields.map((f, i) => [f, values[i]] as const).filter(([, v]) => v !== null && v !== false && v !== 0 && v !== "").map(([f, v]) => `${f} ${show(v)}`).join("  ");
}

/** position returns the position of an object on the map. */
export function position(c: Class | undefined, o: StateObject): [number, number] | undefined {
  if (!c || c.map.length < 2) return undefined;
  const x = o.values[c.fields.indexOf(c.map[0]!)], y = o.values[c.fields.indexOf(c.map[1]!)];
  return typeof x === "number" && typeof y === "number" ? [x, y] : undefined;
}
