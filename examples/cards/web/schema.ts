// The schema of "cards" 1.0, written by "schema --ts". Do not edit.

import type { Schema } from "@netloop/client";

/** Objects of the class "listing". */
export interface Listing {
  /** string max=24 */
  Table: string;
  /** []string max=32 max=4 */
  Players: Array<string>;
  /** uint8 */
  Taken: number;
  /** uint8 */
  Seats: number;
  /** uint8 */
  Phase: number;
  /** uint16 */
  Round: number;
}

/** Objects of the class "table". */
export interface Table {
  /** string max=24 */
  Name: string;
  /** string max=64 */
  Code: string;
  /** uint8 */
  Phase: number;
  /** uint8 */
  Top: number;
  /** uint8 */
  Suit: number;
  /** uint8 */
  Turn: number;
  /** uint8 */
  Pile: number;
  /** uint16 */
  Round: number;
  /** uint8 */
  Winner: number;
  /** {Until instant; Length uint32} */
  Clock: { Until: bigint; Length: number };
  /** uint8 */
  Players: number;
  /** uint16 */
  Goal: number;
  /** uint16 */
  Turns: number;
  /** uint8 */
  Mover: number;
  /** bool */
  Drew: boolean;
}

/** Objects of the class "seat". */
export interface Seat {
  /** uint8 */
  Place: number;
  /** string max=32 */
  Player: string;
  /** bytes max=52, read by: owner */
  Hand: Uint8Array;
  /** uint8 */
  Cards: number;
  /** {Status uint8; Until instant} */
  Presence: { Status: number; Until: bigint };
  /** uint16 */
  Score: number;
}

/** The payload of "lobby.sit". */
export interface SitDown {
  /** string max=24 */
  Table: string;
  /** bool */
  Private: boolean;
  /** bool */
  Watch: boolean;
}

/** The payload of "lobby.sit". */
export interface Place {
  /** string max=64 */
  Room: string;
  /** string max=512 */
  Ticket: string;
}

/** The payload of "lobby.record". */
export interface RecordQuery {
}

/** The payload of "lobby.record". */
export interface Won {
  /** uint32 */
  Played: number;
  /** uint32 */
  Won: number;
}

/** The payload of "table.leave". */
export interface GetUp {
}

/** The payload of "table.play". */
export interface Move {
  /** uint8 */
  Card: number;
  /** uint8 */
  Suit: number;
}

/** The payload of "table.play". */
export interface Done {
}

/** The payload of "table.draw". */
export interface DrawOne {
}

/** The types of the game, by the names that they have on the wire. */
export interface Cards {
  classes: {
    "listing": Listing;
    "table": Table;
    "seat": Seat;
  };
  rpcs: {
  };
  calls: {
    "lobby.sit": { question: SitDown; answer: Place };
    "lobby.record": { question: RecordQuery; answer: Won };
    "table.leave": { question: GetUp; answer: Place };
    "table.play": { question: Move; answer: Done };
    "table.draw": { question: DrawOne; answer: Done };
  };
  input: undefined;
}

/** The maximum bytes of texts and elements of lists, by class or method and field. */
export const limits = {
  "listing": { Table: 24, Players: 4 },
  "table": { Name: 24, Code: 64 },
  "seat": { Player: 32, Hand: 52 },
  "lobby.sit": { Table: 24 },
} as const;

/** The schema for connect. */
export const schema: Schema<Cards> = {
  name: "cards",
  major: 1,
  minor: 0,
  classes: {
    "listing": {
      fields: {
        Table: "string max=24",
        Players: "[]string max=32 max=4",
        Taken: "uint8",
        Seats: "uint8",
        Phase: "uint8",
        Round: "uint16",
      },
    },
    "table": {
      fields: {
        Name: "string max=24",
        Code: "string max=64",
        Phase: "uint8",
        Top: "uint8",
        Suit: "uint8",
        Turn: "uint8",
        Pile: "uint8",
        Round: "uint16",
        Winner: "uint8",
        Clock: "{Until instant; Length uint32}",
        Players: "uint8",
        Goal: "uint16",
        Turns: "uint16",
        Mover: "uint8",
        Drew: "bool",
      },
    },
    "seat": {
      fields: {
        Place: "uint8",
        Player: "string max=32",
        Hand: "bytes max=52",
        Cards: "uint8",
        Presence: "{Status uint8; Until instant}",
        Score: "uint16",
      },
    },
  },
  methods: {
    "lobby.sit": { stages: [50], message: "{Table string max=24;Private bool;Watch bool;}", answer: "{Room string max=64;Ticket string max=512;}", timeoutMs: 10000 },
    "lobby.record": { stages: [50], message: "{}", answer: "{Played uint32;Won uint32;}", timeoutMs: 10000 },
    "table.leave": { stages: [50], message: "{}", answer: "{Room string max=64;Ticket string max=512;}", timeoutMs: 10000 },
    "table.play": { stages: [50], message: "{Card uint8;Suit uint8;}", answer: "{}", timeoutMs: 10000 },
    "table.draw": { stages: [50], message: "{}", answer: "{}", timeoutMs: 10000 },
  },
};
