import type { ReplicatedObject } from "./object.js";
import type { Change } from "./replica.js";

/**
 * Collects what happens to objects until somebody asks. However long that takes, it keeps no more
 * than one entry for each object that is shown, and for each that somebody knows and that is gone.
 */
export class Changes {
  private pending: ReplicatedObject[] = [];
  private said: Change[] = [];
  private taken = 0;

  spawned(o: ReplicatedObject): void {
    o.change = "spawned";
    this.pending.push(o);
  }

  changed(o: ReplicatedObject): void {
    if (o.change === "") {
      o.change = "changed";
      this.pending.push(o);
    }
  }

  despawned(o: ReplicatedObject): void {
    if (o.change === "spawned") {
      this.forget(o);
      return;
    }
    if (o.change === "changed") {
      this.forget(o); // its end comes where it happened
    }
    o.change = "despawned";
    this.pending.push(o);
  }

  private forget(o: ReplicatedObject): void {
    this.pending.splice(this.pending.lastIndexOf(o), 1);
    o.change = "";
  }

  /** Says everything, and begins anew. */
  take(): readonly Change[] {
    const { said, pending } = this;
    for (let i = pending.length; i < this.taken; i++) {
      said[i].object = undefined as never; // nothing that is gone stays in memory for it
    }
    this.taken = pending.length;
    let n = 0;
    for (const o of pending) {
      if (said.length === n) {
        said.push({ kind: "changed", object: o });
      }
      said[n].kind = o.change as Change["kind"];
      said[n++].object = o;
      o.change = "";
    }
    pending.length = 0;
    said.length = n;
    return said;
  }
}
