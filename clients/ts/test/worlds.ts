// Reads the log of a Go test with random worlds: the packets that each client received, and the results of
// the reader in Go that was written from docs/WIRE.md. The reader in TypeScript must have the same results.
// The command line names the file; typescript_test.go of internal/netvar describes its content.

import { readFileSync } from "node:fs";
import { inspect, isDeepStrictEqual } from "node:util";
import { decodeMessage, encodeMessage } from "../src/codec/message.js";
import { readSchema, type Schema } from "../src/codec/schema.js";
import { Replica, type ApplyResult } from "../src/state/replica.js";
import { ByteReader } from "../src/wire/bytes.js";
import { memoryOf, versionsOf } from "./stored.js";

const enum Entry {
  World,
  Join,
  Packet,
  Record,
}

const KINDS = ["refused", "stale", "repeated", "applied"] as const;
const DIGESTS = ["none", "equal", "unequal"] as const;

class Worlds {
  readonly tally: Record<string, number> = {};
  private seed = 0;
  private looked = 0;
  private checks = 0;
  private schema!: Schema;
  private readonly clients = new Map<number, Replica>();
  private readonly r = new ByteReader();

  constructor(bytes: Uint8Array) {
    this.r.open(bytes, 0, bytes.length);
  }

  run(): void {
    while (this.r.left() > 0) {
      const at = this.r.at;
      try {
        this.entry(this.r.u8());
      } catch (e) {
        console.error(`seed ${this.seed}, at byte ${at}, after ${JSON.stringify(this.tally)}:`);
        throw e;
      }
    }
  }

  private entry(kind: Entry): void {
    const { r } = this;
    switch (kind) {
      case Entry.World:
        this.seed = r.u32();
        this.schema = readSchema(r.copy(r.u32()));
        this.clients.clear();
        return;
      case Entry.Join:
        this.clients.set(r.u32(), new Replica(this.schema, r.f64()));
        return;
      default: {
        const replica = this.clients.get(r.u32())!;
        const bytes = r.copy(r.u32());
        const result = kind === Entry.Packet ? replica.apply(bytes) : replica.applyLarge(bytes);
        this.check(replica, result, kind === Entry.Packet);
      }
    }
  }

  private check(replica: Replica, result: ApplyResult, packet: boolean): void {
    const { r } = this;
    const kind = KINDS[r.u8()];
    const whole = r.u8() === 1;
    const digest = DIGESTS[r.u8()];
    const versions = r.u32();
    const [lo, hi] = [r.u32(), r.u32()];
    const sum = (BigInt(hi) << 32n) | BigInt(lo);
    this.tally[kind] = (this.tally[kind] ?? 0) + 1;
    this.same("what became of it", `${result.kind} ${result.why}`.split(" ")[0], kind, result.why);
    if (packet && kind === "applied") {
      this.same("whether the snapshot is whole", result.whole, whole);
      this.same("what is said of the digest", result.digest, digest);
    }
    this.same("the digest", replica.digest(), sum);
    this.same("the versions that are stored", versionsOf(replica), versions);
    if (this.checks++ % 16 === 0) {
      this.same("the memory that is counted", replica.memory, memoryOf(replica));
    }
    this.checkStates(replica);
  }

  /** Checks the shown state of some objects: encoded as a message it is equal to the original, and so is a copy. */
  private checkStates(replica: Replica): void {
    const changes = replica.changes();
    for (const c of changes) {
      if (c.kind === "despawned" || this.looked++ % 16 > 0) {
        continue;
      }
      if (inspect(c.object.state, { depth: 9 }).includes("\ufffd")) {
        continue; // bytes that are no UTF-8
      }
      const fields = c.object.class.fields;
      const again = decodeMessage(fields, encodeMessage(fields, c.object.state));
      this.same("a state that was encoded and decoded", isDeepStrictEqual(again, c.object.state), true);
      this.same("a copy of a state", isDeepStrictEqual(c.object.copy(), c.object.state), true);
    }
    this.tally.changes = (this.tally.changes ?? 0) + changes.length;
  }

  private same(what: string, got: unknown, want: unknown, more = ""): void {
    if (got !== want) {
      throw new Error(`${what} is ${String(got)}, want ${String(want)} ${more}`);
    }
  }
}

const worlds = new Worlds(readFileSync(process.argv[2]));
worlds.run();
console.log(JSON.stringify(worlds.tally));
