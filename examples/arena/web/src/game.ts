// The arena's client: its prediction and interpolation, and the handlers of messages.

import { connect, type Client, type ObjectClass, type ReplicatedObject } from "@netloop/client";

import { schema, type Arena, type Ship, type Rock, type Shot, type Pickup, type Control, type Duel, type Place, type Waiting } from "../schema.js";
import type { Controls } from "./controls.js";
import { shot, steer } from "./steer.js";

/** The page's reactions to messages and events. */
export interface Events {
  said(name: string, text: string): void;
  /** A ship has been struck: by and ship are the ships' ids. */
  struck(by: number, ship: number): void;
  fell(ship: Ship, own: boolean): void;
  collected(): void;
}

/** Game is the arena of one client. */
export class Game {
  readonly ships: ObjectClass<Ship, Control>;
  readonly rocks: ObjectClass<Rock, Control>;
  readonly shots: ObjectClass<Shot, Control>;
  readonly pickups: ObjectClass<Pickup, Control>;
  /** Only a tournament has objects of these classes. */
  readonly waiting: ObjectClass<Waiting, Control>;
  readonly duels: ObjectClass<Duel, Control>;
  readonly places: ObjectClass<Place, Control>;
  /** The player's ship, once it has spawned. */
  own: ReplicatedObject<Ship> | undefined;
  private readonly hulls = new Map<number, number>();

  constructor(
    readonly client: Client<Arena>,
    controls: Controls,
    events: Events,
  ) {
    this.ships = client.class("ship").interpolate();
    this.rocks = client.class("rock").interpolate();
    this.shots = client.class("shot").interpolate();
    this.pickups = client.class("pickup");
    this.waiting = client.class("waiting");
    this.duels = client.class("duel");
    this.places = client.class("place");
    client.inputs(
      () => {
        const wish = controls.wish();
        return { Thrust: wish.thrust, Fire: wish.fire, Turn: wish.turn };
      },
      { repeat: (last) => ({ ...last, Fire: false }) }, // As NewInput of schema.go does.
    );
    this.predict();
    this.ships.onSpawn((o) => {
      if (o.owner === client.id) this.own = o;
    });
    this.ships.onDespawn((o) => {
      if (o === this.own) this.own = undefined;
      this.hulls.delete(o.id);
    });
    this.ships.onChange((o) => this.look(o, events));
    client.handle("said", (said) => events.said(said.name, said.text));
    client.handle("struck", (strike) => events.struck(Number(strike.By), Number(strike.Ship)));
  }

  /**
   * predict flies the player's ship at once; Steer of ship.go computes the same on the server a
   * little later.
   */
  private predict(): void {
    this.ships.predict((ship, wish, frame) => {
      if (steer(ship, wish, frame)) this.shots.spawn(shot(ship, frame));
    });
    this.shots.predict(() => {});
  }

  /** look detects events of a ship by its change of hull. */
  private look(o: ReplicatedObject<Ship>, events: Events): void {
    const was = this.hulls.get(o.id) ?? o.state.Hull;
    const is = o.state.Hull;
    this.hulls.set(o.id, is);
    if (is === 0 && was > 0) events.fell(o.state, o === this.own);
    if (o === this.own && is > was && was > 0) events.collected();
  }

  /** enter asks for a ship. */
  enter(name: string): void {
    this.client.send("enter", { Name: name });
  }

  say(text: string): void {
    this.client.send("say", { text });
  }

  /** best asks for the best players. */
  async best(top: number): Promise<readonly { name: string; score: number }[]> {
    const reply = await this.client.call("standings", { Top: top });
    return reply.Rows.map((r) => ({ name: r.Name, score: r.Score }));
  }
}

/** enterArena connects as a spectator, or as a player of a tournament. */
export function enterArena(name?: string): Promise<Client<Arena>> {
  return connect({ schema, params: name === undefined ? { Watch: true } : { Name: name } });
}
