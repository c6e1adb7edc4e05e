// The player's connection: to the lobby, with a ticket to a table, and back. It reconnects by
// itself after a temporary failure.

import { Code, NetloopError, connect, type Client, type ReplicatedObject } from "@netloop/client";

import { schema, type Cards, type Listing, type Seat, type SitDown, type Table, type Won } from "../schema.js";

/** The page's text about a missing connection. */
export interface Trouble {
  title: string;
  text: string;
  /** Whether the player has to act: otherwise the session tries again by itself. */
  again: boolean;
}

/** The events for the page. */
export interface Events {
  /** The displayed state may have changed. */
  changed(): void;
  /** A request of the player was refused. */
  note(text: string): void;
  trouble(t: Trouble | undefined): void;
}

const retryMs = 1500;

/** Session is one player's connection to the rooms of a server. */
export class Session {
  client: Client<Cards> | undefined;
  won: Won = { Played: 0, Won: 0 };
  /** A call has no answer yet. */
  busy = false;
  private room = "";
  private watching = false; // It has a spectator's seat in the room.
  private turn = 0; // Counts connections, so that events of an old one are ignored.

  constructor(
    public name: string,
    private readonly events: Events,
  ) {}

  /** go connects: to the room of a ticket, or to one by its name; the empty one is the lobby. */
  async go(where: { ticket?: string; room?: string; spectate?: boolean }): Promise<void> {
    const turn = ++this.turn;
    this.client?.close();
    this.client = undefined;
    this.busy = true;
    this.events.changed();
    try {
      const client = await connect<Cards>({ schema, token: this.name, ...where, timeoutMs: 6000 });
      if (turn !== this.turn) {
        client.close();
        return;
      }
      this.take(client, turn);
    } catch (e) {
      if (turn === this.turn) this.failed(e, where.room ?? "");
    }
  }

  /** move moves to the room of a ticket, over the existing connection. */
  private move(ticket: string, watching = false): void {
    this.watching = watching;
    if (!this.client?.move(ticket)) void this.go({ ticket });
  }

  /** arrived asks for the player's record, in the lobby. */
  private arrived(client: Client<Cards>): void {
    this.room = client.room;
    if (this.room !== "") return;
    client.call("lobby.record", {}).then((w) => { this.won = w; this.events.changed(); }, () => {}); // It is only a figure.
  }

  /** take continues over a new connection. */
  private take(client: Client<Cards>, turn: number): void {
    this.client = client;
    this.room = client.room;
    this.busy = false;
    this.events.trouble(undefined);
    for (const name of ["listing", "table", "seat"] as const) {
      const all = client.class(name);
      all.onSpawn(() => this.events.changed());
      all.onChange(() => this.events.changed());
      all.onDespawn(() => this.events.changed());
    }
    client.onStatus((s) => {
      if (turn !== this.turn) return;
      if (s.phase === "closed") this.ended(s.code, s.text);
      else if (s.phase === "reconnecting") {
        const kept = s.leftMs > 0 ? ` Your seat is kept for ${Math.ceil(s.leftMs / 1000)} s.` : "";
        this.events.trouble({ title: "The connection is lost", text: `Coming back, attempt ${s.attempt}.${kept}`, again: false });
      } else this.events.trouble(undefined);
      if (s.phase === "playing" && client.room !== this.room) this.arrived(client);
      this.events.changed();
    });
    this.arrived(client);
    this.events.changed();
  }

  /** failed shows why there is no connection, and tries again. */
  private failed(e: unknown, room: string): void {
    this.busy = false;
    if (e instanceof NetloopError && e.code !== Code.Lost && e.code !== Code.Timeout) {
      this.ended(e.code, e.message, room);
      return;
    }
    this.events.trouble({ title: "Nobody answers", text: "The server is not there, or the network lets nothing through. Trying again…", again: false });
    this.later(room);
  }

  /** ended shows why a connection has ended, and continues from there. */
  private ended(code: number, text: string, room = this.room): void {
    this.client = undefined;
    this.events.changed();
    switch (code) {
      case Code.Ticket:
        this.events.note("No table opens with that code.");
        void this.go({});
        return;
      case Code.Refused:
      case Code.Full:
      case Code.RoomUnknown:
        if (room !== "") {
          this.events.note(`The table is not to be had: ${text}.`);
          void this.go({});
          return;
        }
        this.events.trouble({ title: "The server does not let you in", text, again: true });
        return;
      case Code.Replaced:
        this.events.trouble({ title: "You play in another window", text: "This one has been left.", again: true });
        return;
      case Code.SchemaMismatch:
      case Code.BadVersion:
        this.events.trouble({ title: "This page does not fit the server", text: "One of them is older. Reload the page to get the one that fits.", again: true });
        return;
      case Code.Closing:
        this.events.trouble({ title: "The server is closing", text: "Looking for it again…", again: false });
        break;
      default:
        this.events.trouble({ title: "The connection has ended", text: `${text} (code ${code}). Trying again…`, again: false });
    }
    this.later(room);
  }

  private later(room: string): void {
    const turn = this.turn;
    setTimeout(() => { if (turn === this.turn) void this.go(room === "" ? {} : { room, spectate: this.watching }); }, retryMs);
  }

  /** sit asks the lobby for a seat, and moves there. */
  sit(wish: Partial<SitDown>): void {
    this.ask(async (c) => {
      const place = await c.call("lobby.sit", { Table: "", Private: false, Watch: false, ...wish });
      this.move(place.Ticket, wish.Watch);
    });
  }

  /** enter moves to the private table of a code. */
  enter(code: string): void {
    this.move(code);
  }

  /**
   * leave moves back to the lobby. The calls of delayed spectators reach no handler, so a spectator
   * connects anew.
   */
  leave(): void {
    if (this.seats().own < 0) {
      void this.go({});
      return;
    }
    this.ask(async (c) => {
      const place = await c.call("table.leave", {});
      this.move(place.Ticket);
    });
  }

  play(card: number, suit: number): void {
    this.ask((c) => c.call("table.play", { Card: card, Suit: suit }));
  }

  draw(): void {
    this.ask((c) => c.call("table.draw", {}));
  }

  /** ask performs one request at a time. */
  private ask(what: (c: Client<Cards>) => Promise<unknown>): void {
    const { client, turn } = this;
    if (!client || this.busy || client.status.phase !== "playing") return;
    this.busy = true;
    this.events.note("");
    what(client).then(
      () => {},
      (e: unknown) => { if (turn === this.turn) this.events.note(sentence(e instanceof Error ? e.message : String(e))); },
    ).finally(() => { if (turn === this.turn) { this.busy = false; this.events.changed(); } });
  }

  /** onTheWay reports whether the state of the room has not arrived yet. */
  onTheWay(): boolean {
    const phase = this.client?.status.phase;
    return phase === "moving" || phase === "loading";
  }

  /** The tables of the lobby, in the order of opening. */
  listings(): Listing[] {
    return byId(this.client?.class("listing")).map((o) => o.state);
  }

  /** The player's table, or undefined in the lobby. */
  table(): Table | undefined {
    return byId(this.client?.class("table"))[0]?.state;
  }

  /** The seats, in order, and the index of the player's own; -1 is none. */
  seats(): { all: Seat[]; own: number } {
    const all = byId(this.client?.class("seat")).sort((a, b) => a.state.Place - b.state.Place);
    return { all: all.map((o) => o.state), own: all.findIndex((o) => o.owner !== 0 && o.owner === this.client?.id) };
  }
}

function byId<S>(objects: Iterable<ReplicatedObject<S>> | undefined): ReplicatedObject<S>[] {
  return objects ? [...objects].sort((a, b) => a.id - b.id) : [];
}

function sentence(text: string): string {
  return text === "" ? "" : text[0]!.toUpperCase() + text.slice(1).replace(/\.$/, "") + ".";
}
