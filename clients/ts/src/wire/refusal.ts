/**
 * The rule of docs/WIRE.md that some bytes break. Readers throw it, and the few functions at the
 * module's boundary catch it. It is no Error: a stack trace is expensive, and no caller reads it.
 */
export class Refusal {
  constructor(readonly why: string) {}
}

/** Throws a Refusal. */
export function refuse(why: string): never {
  throw new Refusal(why);
}

/** Refuses a value that its field cannot have. */
export function outOfRange(): never {
  refuse("value is out of range");
}
