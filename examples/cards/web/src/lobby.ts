// The lobby: the live list of tables, and the buttons to join one.

import type { Listing } from "../schema.js";
import { fill, find, make, say } from "./dom.js";
import { Phase } from "./rules.js";
import type { Session } from "./session.js";

/** showLobby draws the lobby. */
export function showLobby(s: Session): void {
  const list = s.listings();
  const ready = s.client?.status.phase === "playing";
  say(find("won"), s.won.Played > 0 ? `won ${s.won.Won} of ${s.won.Played}` : "");
  find("none").hidden = list.length > 0 || !ready;
  for (const b of document.querySelectorAll<HTMLButtonElement>("#ways button")) b.disabled = !ready || s.busy;
  fill(find("tables"), [list, s.name, s.busy], () => list.map((l) => row(s, l)));
}

/** row makes the row of a table. */
function row(s: Session, l: Listing): HTMLElement {
  const on = l.Phase === Phase.Playing || l.Phase === Phase.Pausing;
  const mine = l.Players.includes(s.name);
  const state = l.Phase === Phase.Waiting ? "waiting" : l.Phase === Phase.Over ? "over" : `round ${l.Round}`;
  const buttons: Node[] = [];
  const button = (text: string, watch: boolean): void => {
    const b = make("button", "", text);
    b.type = "button";
    b.disabled = s.busy;
    b.onclick = () => s.sit({ Table: l.Table, Watch: watch });
    buttons.push(b);
  };
  if (on ? mine : l.Taken < l.Seats) button(on ? "Go back" : "Sit down", false);
  if (!mine) button("Watch", true);
  return make(
    "li", mine && on ? "own" : "",
    make("b", "", l.Table), make("span", "names", l.Players.join(", ") || "nobody"),
    make("span", "count", `${l.Taken}/${l.Seats}`), make("span", "state", state), make("span", "doing", ...buttons),
  );
}
