// The texts for a player about errors: the meaning, and the possible action.

import { Code, NetloopError, type Status } from "@netloop/client";

/** Trouble is the text of an error. */
export interface Trouble {
  title: string;
  text: string;
  /** Whether another attempt may help. */
  again: boolean;
}

const known: Record<number, Trouble> = {
  [Code.Closing]: { title: "The server is closing", text: "It may be back in a moment.", again: true },
  [Code.Kicked]: { title: "You were removed", text: "", again: true },
  [Code.BadVersion]: { title: "This page is older than the server", text: "Reload the page to get the one that fits.", again: false },
  [Code.SchemaMismatch]: { title: "This page does not fit the server", text: "One of them is older. Reload the page to get the one that fits.", again: false },
  [Code.RoomUnknown]: { title: "There is no such room", text: "", again: false },
  [Code.Full]: { title: "The arena is full", text: "Try again when somebody has left.", again: true },
  [Code.Busy]: { title: "The server is busy", text: "It lets nobody in at the moment.", again: true },
  [Code.Flood]: { title: "The server has hung up", text: "This page sent more than it may.", again: true },
  [Code.Slow]: { title: "The server has hung up", text: "This page did not keep up with what was sent to it.", again: true },
  [Code.Timeout]: { title: "The server does not answer", text: "It may be gone, or the network between may let nothing through.", again: true },
  [Code.Lost]: { title: "The connection is lost", text: "The network is gone, or the server.", again: true },
  [Code.Unauthenticated]: { title: "You are not logged in", text: "The server wants a token that this page does not have.", again: false },
  [Code.Replaced]: { title: "You play in another window", text: "This one has been left.", again: true },
};

/** troubleOf describes why a client has ended. text is the server's or the client's. */
export function troubleOf(code: number, text: string): Trouble {
  const t = known[code] ?? { title: "The connection has ended", text: "", again: true };
  const said = text && text !== t.text ? ` (${text}, code ${code})` : ` (code ${code})`;
  return { ...t, text: (t.text + said).trim() };
}

/** troubleOfError describes why connect has failed. */
export function troubleOfError(error: unknown): Trouble {
  const text = String(error instanceof Error ? error.message : error);
  if (error instanceof NetloopError && error.code !== Code.Lost) return troubleOf(error.code, text);
  return { title: "The server cannot be reached", text: `It is not there, or the network between lets nothing through. (${text})`, again: true };
}

/** comingBack describes a reconnection. */
export function comingBack(s: Status): Trouble {
  const left = s.leftMs > 0 ? ` Your ship is kept for ${Math.ceil(s.leftMs / 1000)} s.` : "";
  return { title: "The connection is lost", text: `Trying to come back, attempt ${s.attempt}.${left}`, again: false };
}
