// Reads the stored data of a replica, for tests; other code must not read it.

import { Blob, List } from "../src/codec/layout.js";
import { Memory, type ReplicatedObject } from "../src/state/object.js";
import type { Class } from "../src/codec/schema.js";
import type { Replica } from "../src/state/replica.js";

function objectsOf(replica: Replica): ReplicatedObject[] {
  return (replica as unknown as { slots: (ReplicatedObject | undefined)[] }).slots.filter((o) => o !== undefined);
}

/** The number of stored versions of all objects. */
export function versionsOf(replica: Replica): number {
  return objectsOf(replica).reduce((n, o) => n + o.versions.length, 0);
}

/** The memory that a replica has to count: each version, spare ones too, and each string and list once. */
export function memoryOf(replica: Replica): number {
  const seen = new Set<unknown>();
  let size = 0;
  const add = (x: readonly unknown[]) => {
    for (const v of x) {
      if ((v instanceof Blob || v instanceof List) && !seen.has(v)) {
        seen.add(v);
        size += v.size;
        if (v instanceof List) add(v.x);
      }
    }
  };
  for (const o of objectsOf(replica)) {
    for (const v of o.versions) {
      size += Memory.sizeOf(o.class.layout);
      add(v.x);
    }
  }
  const spare = (replica as unknown as { bytes: { free: Map<Class, unknown[]> } }).bytes.free;
  for (const [c, pool] of spare) {
    size += pool.length * Memory.sizeOf(c.layout);
  }
  return size;
}
