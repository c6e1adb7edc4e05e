import type { Grid } from "./types.js";

/**
 * cells returns the cells whose objects a client has, and those whose objects it keeps, at the height of
 * its viewpoints: the distance of two cells is the gap between them, as in package grid of the server.
 */
export function cells(g: Grid): { x: number; y: number; inside: boolean }[] {
  const found = new Map<string, { x: number; y: number; inside: boolean }>();
  const reach = Math.floor(g.border / g.cell) + 1;
  for (const { cell: [ex, ey] } of g.eyes) {
    for (let x = ex - reach; x <= ex + reach; x++) {
      for (let y = ey - reach; y <= ey + reach; y++) {
        const gap = g.cell * Math.hypot(Math.max(0, Math.abs(x - ex) - 1), Math.max(0, Math.abs(y - ey) - 1));
        if (gap > g.border + 1e-9) continue;
        const key = `${x} ${y}`, inside = gap <= g.inside + 1e-9;
        if (inside || !found.has(key)) found.set(key, { x, y, inside });
      }
    }
  }
  return [...found.values()];
}
