import type { ReplicatedObject } from "./object.js";
import type { Change } from "./replica.js";

/**
 * Collects the changes of objects until the next call of take. It stores at most one entry for each
 * shown object, and for each despawned object that the caller knows.
 */
export class Changes {
  /**
   * The pending changes, of which the first count are in use: an array that shrinks makes garbage.
   */
  private readonly pending: (ReplicatedObject | undefined)[] = [];
  private count = 0;
  private readonly result: Change[] = [];
  private readonly spare: Change[] = [];

  spawned(o: ReplicatedObject): void {
    this.add(o, "spawned");
  }

  changed(o: ReplicatedObject): void {
    if (o.change === "") {
      this.add(o, "changed");
    }
  }

  despawned(o: ReplicatedObject): void {
    const was = o.change;
    if (was !== "") {
      this.remove(o); // a despawn keeps its place in the order
    }
    if (was !== "spawned") {
      this.add(o, "despawned");
    }
  }

  private add(o: ReplicatedObject, change: Change["kind"]): void {
    o.change = change;
    this.pending[this.count++] = o;
  }

  private remove(o: ReplicatedObject): void {
    const at = this.pending.lastIndexOf(o, this.count - 1);
    this.pending.copyWithin(at, at + 1, this.count);
    this.pending[--this.count] = undefined;
    o.change = "";
  }

  /** Returns all changes, and starts again. */
  take(): readonly Change[] {
    const { result, pending, spare } = this;
    while (result.length > this.count) {
      const c = result.pop()!;
      c.object = undefined as never; // keeps no despawned object in memory
      spare.push(c);
    }
    for (let i = 0; i < this.count; i++) {
      const o = pending[i]!;
      if (result.length === i) {
        result.push(spare.pop() ?? { kind: "changed", object: o });
      }
      result[i].kind = o.change as Change["kind"];
      result[i].object = o;
      o.change = "";
      pending[i] = undefined;
    }
    this.count = 0;
    return result;
  }
}
