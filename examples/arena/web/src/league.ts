// The texts of a tournament: the wait in its lobby, and the clock and the result of a duel.

import type { Game } from "./game.js";

/** The texts for a player. */
export interface League {
  /** In the lobby, instead of the invitation to fly. */
  intro: string;
  /** Whether a key press puts the player into the queue. */
  joins: boolean;
  /** In a duel; "" outside of one. */
  duel: string;
}

/** leagueOf returns the texts of a tournament, or undefined in an arena without one. */
export function leagueOf(g: Game): League | undefined {
  for (const { state } of g.waiting) {
    const left = g.client.clock.left(state.Until);
    if (!state.Queued) return { intro: "Press any key to join the tournament", joins: true, duel: "" };
    return { intro: `Waiting for a duel${state.Until === 0n ? "" : left > 0 ? `, about ${seconds(left)}` : ", any moment"}`, joins: false, duel: "" };
  }
  for (const { state } of g.duels) {
    const left = seconds(g.client.clock.left(state.Clock.Until));
    const score = [...g.places].map((p) => `${p.state.Player} ${p.state.Score}`).join(" : ");
    const duel = state.Playing ? `${score} · ${left}`
      : state.Over ? `${state.Winner ? `${state.Winner} wins` : "A draw"} · ${score}`
      : `The other player comes within ${left}`;
    return { intro: "", joins: false, duel };
  }
  return undefined;
}

function seconds(ms: number): string {
  return `${Math.ceil(ms / 1000)} s`;
}
