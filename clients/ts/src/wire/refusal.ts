/**
 * Which rule of docs/WIRE.md some bytes break. It is thrown by what reads them, and caught by the
 * few functions that others call. It is no Error: a stack is dear, and nobody would look at it.
 */
export class Refusal {
  constructor(readonly why: string) {}
}

/** Throws a Refusal. */
export function refuse(why: string): never {
  throw new Refusal(why);
}

/** Refuses a value that its field cannot have. */
export function beyond(): never {
  refuse("a value beyond its field");
}
