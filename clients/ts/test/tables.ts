// A schema for tests, as the bytes of its tables.

import { Writer } from "../src/wire/protobuf.js";

type Field = [name: string, kind: number, more?: { max?: number; num?: number; den?: number; element?: Uint8Array }];

function type(kind: number, m: Field[2] = {}): Uint8Array {
  const w = new Writer().number(1, kind).number(2, m.max ?? 0).number(3, m.num ?? 0).number(4, m.den ?? 0);
  if (m.element) w.sized(5, m.element);
  return w.done();
}

function field([name, kind, more]: Field): Uint8Array {
  return new Writer().text(1, name).sized(3, type(kind, more)).done();
}

function struct(fields: Field[]): Uint8Array {
  const w = new Writer().number(1, 19);
  for (const f of fields) w.sized(6, field(f));
  return w.done();
}

const TEXT: Field = ["Text", 14, { max: 128 }];

/** Methods: 1 "tell" (stages 50 and 30), 2 "shout" (unreliable), 3 "ask" (a call). A class "ship" and an input. */
export const tables = (() => {
  const w = new Writer();
  const ship = new Writer().text(1, "ship");
  const fields: Field[] = [["X", 10, { num: 1, den: 256 }], ["VX", 10], ["Leaps", 6], ["Name", 14, { max: 16 }]];
  for (const f of fields) ship.sized(2, field(f));
  w.sized(1, ship.done());
  const method = (name: string, kind: number, stages: number[], reliable: boolean, reply?: Uint8Array) => {
    const m = new Writer().text(1, name).number(2, kind).sized(5, Uint8Array.from(stages)).number(6, reliable).sized(7, struct([TEXT]));
    if (reply) m.sized(8, reply);
    w.sized(2, m.done());
  };
  method("tell", 1, [50, 30], true);
  method("shout", 1, [50], false);
  method("ask", 2, [50], true, struct([TEXT]));
  w.sized(3, struct([["Turn", 2], ["Fire", 1]]));
  return w.done();
})();
