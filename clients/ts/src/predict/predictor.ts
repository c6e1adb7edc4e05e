import type { Frame } from "../api.js";
import { decodeMessage, encodeMessage, type MessageType } from "../codec/index.js";
import type { Predicted } from "./predicted.js";

/** Predicts the objects of a class. */
export class Predictor {
  /** In the order in which they run: first the server's objects by id, then the client's own. */
  objects: Predicted[] = [];
  readonly wrong: Record<string, number> = {};

  constructor(
    readonly className: string,
    readonly type: MessageType,
    readonly step: (state: any, input: any, frame: Frame) => void,
    readonly smoothingMs: number,
    readonly snap: ((was: any, is: any) => boolean) | undefined,
    /** The field by which an object of spawn is matched. */
    readonly born: string | undefined,
  ) {}

  /** Rounds a state to the wire's precision. */
  round(state: Record<string, unknown>): Record<string, unknown> {
    return decodeMessage(this.type, encodeMessage(this.type, state, true)) as Record<string, unknown>;
  }

  insert(d: Predicted): void {
    let i = this.objects.length;
    const after = (other: Predicted) => other.spawnInfo.unconfirmed || other.entity.id > d.entity.id;
    while (i > 0 && !d.spawnInfo.unconfirmed && after(this.objects[i - 1])) i--;
    this.objects.splice(i, 0, d);
  }

  remove(d: Predicted): void {
    const i = this.objects.indexOf(d);
    if (i >= 0) this.objects.splice(i, 1);
  }

  /** The object of spawn with this birth. */
  find(step: number, n: number): Predicted | undefined {
    return step > 0 ? this.objects.find((d) => d.spawnInfo.step === step && d.spawnInfo.n === n) : undefined;
  }

  /** Counts the mispredicted fields. */
  count(was: Uint8Array, is: Uint8Array): void {
    differences(decodeMessage(this.type, was), decodeMessage(this.type, is), "", (path) => {
      this.wrong[path] = (this.wrong[path] ?? 0) + 1;
    });
  }
}

export function differences(a: any, b: any, path: string, found: (path: string) => void): void {
  if (Object.is(a, b)) return;
  const nested = a !== null && b !== null && typeof a === "object" && typeof b === "object";
  if (!nested || ArrayBuffer.isView(a) || Array.isArray(a) !== Array.isArray(b)) return different(a, b) ? found(path) : undefined;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  if (keys.size === 0) return different(a, b) ? found(path) : undefined;
  for (const k of keys) differences(a[k], b[k], path ? `${path}.${k}` : k, found);
}

/** Reports whether two leaves differ: byte arrays, maps and sets by their contents. */
function different(a: any, b: any): boolean {
  const text = (v: any) =>
    JSON.stringify(v instanceof Map || v instanceof Set || ArrayBuffer.isView(v) ? [...(v as any)] : v, (_, x) => (typeof x === "bigint" ? `${x}n` : x));
  return text(a) !== text(b);
}
