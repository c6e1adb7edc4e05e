// The messages between a client and its server: messages wait for their stages, calls for their
// answers.

import { Code, NetloopError, type Stage, type CallOptions, type Frame, type SendOptions, type Unsubscribe } from "./api.js";
import { CurrentFrame } from "./frame.js";
import { decodeMessage, encodeMessage, type Method, type Schema as Served } from "./codec/index.js";
import { fieldsKnown, known } from "./names.js";
import { Connection } from "./connection.js";
import { Calls } from "./rpc/calls.js";
import { Held, StageQueues, type Queued } from "./rpc/queue.js";
import type { Message } from "./wire/frames.js";

type Handler = (message: any, frame: Frame) => void;
const CALL_TIMEOUT = 10_000;

export abstract class Messages extends Connection {
  readonly frame = new CurrentFrame();
  protected calls = new Calls();
  protected held = new Held();
  private methods = new Map<string, Method>();
  private handlers = new Map<string, Handler>();
  private queues = new StageQueues();

  /** Stores the methods of a server. */
  protected setMethods(served: Served): void {
    this.methods = new Map(served.methods.map((m) => [m.name, m]));
  }

  guard(where: string, fn: () => void): void {
    try {
      fn();
    } catch (error) {
      this.counts.errors++;
      if (this.options.onError) this.options.onError(error, where);
      else console.error(`netloop: ${where}:`, error);
    }
  }

  protected queue = (q: Queued): void => {
    const m = this.served!.methods[q.message.method - 1]!;
    if (!m.stages.includes(q.stage) || !this.queues.push(q)) this.counts.rejected++;
  };

  protected arrivedMessage(message: Message): void {
    const m = this.served!.methods[message.method - 1];
    if (message.reply) {
      return this.calls.answer(message, (b) => {
        const answer = m?.reply && decodeMessage(m.reply, b);
        if (answer === undefined) this.traffic.dropped++;
        return answer;
      });
    }
    if (!m || m.call) {
      this.counts.unknown++;
      return;
    }
    const q = { message, stage: message.stage || m.stages[0]! };
    if (!this.held.hold(q, this.time.tick, this.queue)) this.queue(q);
  }

  protected drain(stage: Stage): void {
    for (const { message } of this.queues.take(stage)) {
      const m = this.served!.methods[message.method - 1]!;
      const handler = this.handlers.get(m.name);
      if (!handler) {
        if (this.options.schema && !(m.name in this.options.schema.methods)) this.counts.unknown++;
        else this.counts.rejected++;
        continue;
      }
      const decoded = decodeMessage(m.message, message.payload);
      if (decoded === undefined) this.traffic.dropped++;
      else this.guard(`handle ${m.name}`, () => handler(decoded, this.frame));
    }
  }

  /** Finds a method that the server has, or undefined. */
  private method(name: string, call: boolean, stage: Stage | undefined): Method | undefined {
    const m = this.methods.get(name);
    if (!m) {
      if (this.options.schema || !call) known("method", name, Object.keys(this.options.schema?.methods ?? Object.fromEntries(this.methods)));
      return undefined;
    }
    if (m.call !== call) throw new Error(`${name} is ${m.call ? "a call: use call" : "not a call: use send"}`);
    if (stage && !m.stages.includes(stage)) throw new Error(`${name} does not run at stage ${stage}: its declaration allows ${m.stages}`);
    return m;
  }

  private encode(m: Method, message: unknown): Uint8Array | undefined {
    fieldsKnown(this.options.schema?.methods[m.name]?.message ?? m.message.text, message, m.name);
    try {
      return encodeMessage(m.message, message);
    } catch (error) {
      this.options.log?.(`${m.name} cannot be sent: ${error}`);
      return undefined;
    }
  }

  send(method: string, message: unknown, options: SendOptions = {}): boolean {
    const m = this.method(method, false, options.stage);
    const payload = m && this.encode(m, message);
    const out = m && payload && { method: m.id, stage: options.stage ?? 0, call: 0, payload, reliable: m.reliable };
    const handled = !m || this.handles.length === 0 || (this.handles[(m.id - 1) >> 3]! >> ((m.id - 1) & 7)) & 1;
    if (out && handled && !this.closed && (!this.rejoin || m.reliable) && this.link?.send(out)) return true;
    if (!handled) this.options.log?.(`room does not handle ${method}`);
    this.counts.unsent++;
    return false;
  }

  call(method: string, question: unknown, options: CallOptions = {}): Promise<any> {
    const { closed } = this;
    const m = this.method(method, true, options.stage);
    const payload = m && this.encode(m, question);
    return new Promise((resolve, reject) => {
      const refuse = (code: number, text: string) => reject(new NetloopError(code, text));
      if (closed) return refuse(closed.code, closed.text);
      if (!m) return refuse(Code.UnknownMethod, `server has no method ${JSON.stringify(method)}`);
      if (!payload) return refuse(Code.Invalid, `question of ${method} does not fit`);
      if (this.calls.full) return refuse(Code.Busy, "too many pending calls");
      const deadline = this.platform.now() + (options.timeoutMs ?? this.options.schema?.methods[method]?.timeoutMs ?? CALL_TIMEOUT);
      const call = this.calls.add({ method: m.id, deadline, resolve, reject });
      const out = { method: m.id, stage: options.stage ?? 0, call, payload, reliable: m.reliable };
      if (!this.link?.send(out)) this.calls.fail(call, new NetloopError(Code.Lost, "not connected, and the question cannot be queued"));
    });
  }

  handle(method: string, fn: Handler): Unsubscribe {
    if (this.handlers.has(method)) throw new Error(`handle ${method} is called twice`);
    this.method(method, false, undefined);
    this.handlers.set(method, fn);
    return () => void (this.handlers.get(method) === fn && this.handlers.delete(method));
  }

  protected failCalls(code: number, text: string): void {
    this.calls.failAll(code, text);
  }
}
