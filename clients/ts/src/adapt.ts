// Checks that the page's schema fits the server's, by names and type texts, and supplies zero
// values for fields that the server does not have.

import { Code, NetloopError } from "./api.js";
import type { Schema as Served } from "./codec/index.js";
import type { Schema } from "./schema.js";

/** The fields of a struct, in the order of the text "{A T;B U;}". */
export function fieldsOf(struct: string): Map<string, string> {
  const fields = new Map<string, string>();
  let depth = 0;
  let from = 1;
  for (let i = 1; i < struct.length; i++) {
    const c = struct[i];
    if (c === "{") depth++;
    if ((c === ";" && depth === 0) || (c === "}" && depth-- === 0)) {
      const field = struct.slice(from, i).trim();
      const space = field.indexOf(" ");
      if (space > 0) fields.set(field.slice(0, space), field.slice(space + 1));
      from = i + 1;
    }
  }
  return fields;
}

/**
 * The path of the first difference between two types apart from their limits, or undefined. Fields
 * that only one of the types has do not count.
 */
function difference(own: string, served: string, path: string): string | undefined {
  if (bare(own) === bare(served)) return undefined;
  if (own.startsWith("{") && served.startsWith("{")) {
    const theirs = fieldsOf(served);
    for (const [name, type] of fieldsOf(own)) {
      const other = theirs.get(name);
      const found = other === undefined ? undefined : difference(type, other, `${path}.${name}`);
      if (found) return found;
    }
    return undefined;
  }
  const list = /^(\[\d*\]|map\[[^\]]*\])(.*)$/s;
  const [, a, inA] = list.exec(own) ?? [];
  const [, b, inB] = list.exec(served) ?? [];
  if (a !== undefined && b !== undefined && bare(a) === bare(b)) return difference(inA!, inB!, path);
  return `${path} is ${own} in the page and ${served} on the server`;
}

function bare(type: string): string {
  return type.replace(/ max=\d+/g, "").trim();
}

/** Throws a NetloopError that names the first mismatch. */
export function check(own: Schema<any> | undefined, served: Served): void {
  if (!own) return;
  const refuse = (what: string | undefined) => {
    if (what) throw new NetloopError(Code.SchemaMismatch, `page and server are of different builds: ${what}`);
  };
  for (const c of served.classes) {
    const mine = own.classes[c.name];
    if (mine) refuse(difference(structOf(mine.fields), c.fields.text, `class "${c.name}"`));
  }
  for (const m of served.methods) {
    const mine = own.methods[m.name];
    if (!mine) continue;
    if ((mine.answer !== undefined) !== m.call) refuse(`method "${m.name}" is a call on one side only`);
    refuse(difference(mine.message, m.message.text, `method "${m.name}"`));
    if (m.reply) refuse(difference(mine.answer!, m.reply.text, `the answer of "${m.name}"`));
  }
  if (own.input && served.input) refuse(difference(own.input, served.input.text, "the input"));
}

function structOf(fields: Record<string, string>): string {
  return `{${Object.entries(fields)
    .map(([name, type]) => `${name} ${type};`)
    .join("")}}`;
}

/** The zero value of a type, for a field that the server does not have. */
export function zeroOf(type: string): unknown {
  if (type.startsWith("{")) return Object.fromEntries([...fieldsOf(type)].map(([name, t]) => [name, zeroOf(t)]));
  if (type.startsWith("map[")) return new Map();
  if (type.startsWith("set[")) return new Set();
  const array = /^\[(\d*)\](.*)$/s.exec(type);
  if (array) {
    const n = Number(array[1]);
    return array[2] === "byte" ? new Uint8Array(n) : Array.from({ length: n }, () => zeroOf(array[2]!));
  }
  switch (type.split(" ", 1)[0]) {
    case "bool":
      return false;
    case "int64":
    case "uint64":
    case "instant":
      return 0n;
    case "string":
      return "";
    case "bytes":
      return new Uint8Array(0);
    case "proto":
      return null;
    case "quat":
      return [0, 0, 0, 0];
    default:
      return 0;
  }
}
