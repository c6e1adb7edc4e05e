// A client of the game in this tab, with the library that the games' pages use. It joins over WebTransport
// if game and page are on this machine, and else over a WebSocket of the admin listener.
import type { Client, ConnectOptions, Status } from "../../../../clients/ts/dist/types/index.js";
import { protobufCodecs } from "../../../../clients/ts/src/protobuf.js";
import { act } from "./api.js";
import { Converter } from "./message.js";
import type { Forms, MethodForm, TypeForm } from "./types.js";

/** The most lines, and characters of a line's message, that a tab keeps. */
const maxLines = 200, maxText = 4000;

/** Opening has the options with which a client joins. The token goes to the game alone. */
export interface Opening {
  room: string;
  token: string;
  ticket: string;
  spectate: boolean;
  params: unknown;
}

/** Line is something that the client has sent, or that has happened to it. */
export interface Line {
  at: number;
  kind: "sent" | "received" | "answer" | "note" | "wrong";
  method: string;
  text: string;
}

/** Player is one client. It plays until it has left, whether its view is shown or not. */
export class Player {
  readonly lines: Line[] = []; // the newest first
  client: Client<any> | undefined;
  /** ended is the reason, once the client has none of the server's seats any more. */
  ended = "";
  private readonly convert: Converter;
  private away: (() => void) | undefined;
  private gate = Promise.resolve();
  private held: unknown;
  private unused: Promise<string> | undefined;
  private descriptions = 0;

  constructor(readonly number: number, readonly opening: Opening, readonly forms: Forms, private readonly classes: string[], private readonly changed: () => void) {
    this.convert = new Converter(forms);
    void this.open();
  }

  private async open(): Promise<void> {
    const { room, token, ticket, spectate, params } = this.opening;
    const library = "/inspect/netloop.js";
    const options: ConnectOptions<any> = {
      url: "/api/client/open", room, ticket, token, spectate, params,
      reconnect: { giveUpMs: 600_000 }, protobuf: protobufCodecs(this.forms.messages),
      platform: { fetch: () => this.describe() },
      log: (line) => this.add("note", "", line),
      onError: (e, where) => this.add("wrong", "", `${where}: ${(e as Error).message}`),
    };
    try {
      const { connect } = (await import(library)) as typeof import("../../../../clients/ts/dist/types/index.js");
      const client = await connect(options);
      this.client = client;
      if (this.ended) return client.close(); // The tab has left meanwhile.
      this.add("note", "", `joined the room ${client.room || "(default)"} as client ${client.id}`);
      this.listen(client);
    } catch (e) {
      this.end((e as Error).message);
    }
  }

  /** describe asks for the addresses of the server, for each attempt to connect; before the first one, connect asks twice. */
  private async describe(): Promise<Response> {
    await this.gate;
    const asked = this.unused ?? act("/api/client/open", { room: this.opening.room, host: location.host });
    this.unused = this.descriptions++ === 0 ? asked : undefined;
    const info = JSON.parse(await asked);
    info.webSocket = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${info.webSocket}`;
    return new Response(JSON.stringify(info));
  }

  private listen(client: Client<any>): void {
    let last: Status["phase"] = "loading";
    for (const m of this.forms.methods.filter((x) => !x.call)) client.handle(m.name, (v: unknown) => this.add("received", m.name, this.text(m, m.message, v)));
    client.onStatus((s) => {
      if (s.phase === "closed") return this.end(s.text || "it has left");
      if (s.phase !== last) this.add("note", "", phase(client));
      last = s.phase;
      this.changed();
    });
    const frame = (now: number) => {
      if (client.closed) return;
      client.step(now);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  /** status describes the client in a few words. */
  get status(): string {
    if (this.ended) return this.ended;
    return this.client ? phase(this.client) : "joins";
  }

  /** dropped reports whether the connection was dropped by drop. */
  get dropped(): boolean {
    return this.away !== undefined;
  }

  /** objects is the number of objects that the client has. */
  get objects(): number {
    return this.client ? this.classes.reduce((n, name) => n + this.client!.class(name).size, 0) : 0;
  }

  /** drop breaks the connection without a word, and keeps it broken until the client comes back. */
  drop(): void {
    this.gate = new Promise((open) => { this.away = open; });
    this.client?.cut();
    this.changed();
  }

  comeBack(): void {
    this.away?.();
    this.away = undefined;
    this.changed();
  }

  move(ticket: string): void {
    if (!this.client?.move(ticket)) this.add("wrong", "", "the room lets no client move, or there is no connection");
  }

  leave(): void {
    const { client } = this;
    this.end("it has left");
    client?.close();
    this.comeBack();
  }

  /** send sends a message, or asks a call. It throws an Error for JSON that is none of the method's messages. */
  send(m: MethodForm, stage: number | undefined, json: unknown): void {
    const client = this.client!;
    const options = stage === undefined ? {} : { stage: stage as any };
    const value = this.convert.parse(m.message, json);
    const text = this.text(m, m.message, value);
    if (!m.call) {
      if (client.send(m.name, value, options)) this.add("sent", m.name, text);
      else this.add("wrong", m.name, "was not sent");
      return;
    }
    this.add("sent", m.name, text);
    client.call(m.name, value, { ...options, timeoutMs: m.timeout_ms }).then(
      (answer: unknown) => this.add("answer", m.name, this.text(m, m.answer!, answer)),
      (e: Error) => this.add("wrong", m.name, e.message));
  }

  /** hold makes JSON the input of each fixed step from now on. */
  hold(json: unknown): void {
    const value = this.convert.parse(this.forms.input!, json);
    if (this.held === undefined) this.client!.inputs(() => this.held);
    this.held = value;
    this.add("sent", "input", JSON.stringify(json));
  }

  private text(m: MethodForm, t: TypeForm, value: unknown): string {
    return m.secret ? "(secret)" : JSON.stringify(this.convert.show(t, value));
  }

  private add(kind: Line["kind"], method: string, text: string): void {
    this.lines.unshift({ at: Date.now(), kind, method, text: text.length > maxText ? `${text.slice(0, maxText)}…` : text });
    this.lines.length = Math.min(this.lines.length, maxLines);
    this.changed();
  }

  private end(why: string): void {
    if (this.ended) return;
    this.ended = why.replace("/api/client/open cannot be read: ", "");
    this.add(this.client ? "note" : "wrong", "", this.ended);
  }
}

/** phase describes a client's phase. */
function phase(c: Client<any>): string {
  const s = c.status;
  switch (s.phase) {
    case "loading": return s.objects ? `loads ${s.loaded} of ${s.objects} objects` : "loads";
    case "playing": return "plays";
    case "moving": return "moves to another room";
    case "reconnecting": return `has no connection; the server keeps its seat for ${Math.ceil(s.leftMs / 1000)} s`;
    case "closed": return s.text || "has left";
  }
  return "joins";
}
