// The table: its players, the open card, the player's own cards, and the possible actions.

import type { Seat, Table } from "../schema.js";
import { fill, find, make, say } from "./dom.js";
import { Phase, Status, fits, isEight, isRed, nameOf, rankOf, suitNames, suitOf, suits } from "./rules.js";
import type { Session } from "./session.js";

/** TableView draws a table, and holds the chosen card. */
export class TableView {
  private chosen = 0;
  private eight: number | undefined; // waits for a suit
  private whole = 1; // the full time, for the bar

  constructor(private readonly s: Session) {
    find("suits").append(...suits.map((symbol, i) => {
      const b = make("button", isRed(i) ? "red" : "", symbol);
      b.type = "button";
      b.title = suitNames[i]!;
      b.onclick = () => this.ask(i);
      return b;
    }));
    find("pile").onclick = () => this.draw();
    find("leave").onclick = () => s.leave();
  }

  /** show draws the present state. */
  show(t: Table): void {
    const { all, own } = this.s.seats();
    const hand = own < 0 ? [] : [...all[own]!.Hand];
    const turn = this.turn(t, own);
    if (!turn) this.eight = undefined;
    this.chosen = Math.max(0, Math.min(this.chosen, hand.length - 1));
    say(find("title"), `Table ${t.Name}`);
    say(find("about"), [t.Code && `code ${t.Code}`, t.Round > 0 && `round ${t.Round}, to ${t.Goal} points`, own < 0 && "you watch"].filter(Boolean).join(" · "));
    fill(find("seats"), [all, t.Turn, t.Phase, t.Winner, own], () => all.map((seat, i) => place(seat, i, t, own)));
    this.middle(t, turn);
    this.tick(t, all, own);
    find("suits").hidden = this.eight === undefined;
    find("keys").hidden = own < 0;
    fill(find("hand"), [hand, this.chosen, turn, t.Top, t.Suit, this.eight, this.s.busy], () => hand.map((c, i) => this.card(c, i, turn && fits(c, t.Top, t.Suit), turn)));
  }

  /** tick updates the parts that change with time. */
  tick(t: Table, all: readonly Seat[], own: number): void {
    const left = Math.max(0, this.s.client?.clock.left(t.Clock.Until) ?? 0);
    if (left > this.whole) this.whole = left;
    if (left === 0) this.whole = 1;
    const bar = find("time").firstElementChild as HTMLElement;
    bar.style.width = `${t.Phase === Phase.Waiting ? 0 : Math.min(100, (100 * left) / this.whole)}%`;
    find("time").classList.toggle("late", t.Phase === Phase.Playing && own === t.Turn && left < 5000);
    say(find("event"), story(t, all, own, Math.ceil(left / 1000)));
  }

  /** began is called when another turn has begun: the bar is full again. */
  began(): void {
    this.whole = 1;
  }

  private turn(t: Table, own: number): boolean {
    return t.Phase === Phase.Playing && own >= 0 && own === t.Turn;
  }

  private middle(t: Table, turn: boolean): void {
    const dealt = t.Phase !== Phase.Waiting;
    find("middle").classList.toggle("empty", !dealt);
    say(find("left"), dealt ? String(t.Pile) : "");
    find<HTMLButtonElement>("pile").disabled = !turn || this.s.busy;
    fill(find("top"), [t.Top, dealt], () => (dealt ? [face(t.Top)] : []));
    const other = dealt && t.Suit !== suitOf(t.Top);
    fill(find("follow"), [t.Suit, other], () => (other ? ["follow ", make("b", isRed(t.Suit) ? "red" : "", suits[t.Suit] ?? "")] : []));
  }

  /** card makes a card of the hand. */
  private card(c: number, i: number, fit: boolean, turn: boolean): HTMLElement {
    const b = make("button", `card ${isRed(suitOf(c)) ? "red" : ""} ${turn && !fit ? "off" : ""} ${fit ? "fits" : ""} ${turn && i === this.chosen ? "chosen" : ""}`, ...corners(c));
    b.type = "button";
    b.setAttribute("aria-label", `${rankOf(c)} of ${suitNames[suitOf(c)]}`);
    b.dataset.card = String(c);
    b.onclick = () => { this.chosen = i; this.play(); };
    return b;
  }

  /** play plays the chosen card, once its suit is known. */
  private play(): void {
    const t = this.s.table();
    const { all, own } = this.s.seats();
    const card = own < 0 ? undefined : all[own]!.Hand[this.chosen];
    if (!t || card === undefined || !this.turn(t, own) || !fits(card, t.Top, t.Suit)) return;
    if (isEight(card)) this.eight = card;
    else this.s.play(card, 0);
    this.show(t);
  }

  private ask(suit: number): void {
    if (this.eight === undefined) return;
    this.s.play(this.eight, suit);
    this.eight = undefined;
  }

  private draw(): void {
    const t = this.s.table();
    if (t && this.turn(t, this.s.seats().own)) this.s.draw();
  }

  /** key takes a key, and reports whether it has an action. */
  key(key: string): boolean {
    const suit = ["c", "d", "h", "s"].indexOf(key.toLowerCase());
    if (this.eight !== undefined && suit >= 0) this.ask(suit);
    else if (key === "Escape" && this.eight !== undefined) this.eight = undefined;
    else if (key === "Escape") this.s.leave();
    else if (key === "ArrowLeft") this.chosen--;
    else if (key === "ArrowRight") this.chosen++;
    else if (key === "Enter" || key === " ") this.play();
    else if (key.toLowerCase() === "d") this.draw();
    else return false;
    const t = this.s.table();
    if (t) this.show(t);
    return true;
  }
}

/** place makes a seat. */
function place(seat: Seat, i: number, t: Table, own: number): HTMLElement {
  const dealt = t.Phase !== Phase.Waiting;
  const away = seat.Presence.Status !== Status.Here;
  const marks = [t.Phase === Phase.Playing && i === t.Turn && "turn", away && "away", i === own && "own", (t.Phase === Phase.Over || t.Phase === Phase.Pausing) && i === t.Winner && "winner"];
  const backs = Array.from({ length: Math.min(seat.Cards, 12) }, () => make("i", "back"));
  return make(
    "li", marks.filter(Boolean).join(" "),
    make("b", "", seat.Player + (i === own ? " (you)" : "")),
    make("span", "fan", ...backs),
    make("span", "figures", dealt ? `${seat.Cards} ${seat.Cards === 1 ? "card" : "cards"} · ${seat.Score} points` : "is here", away ? " · away" : ""),
  );
}

/** face makes an open card. */
function face(c: number): HTMLElement {
  const e = make("div", `card ${isRed(suitOf(c)) ? "red" : ""}`, ...corners(c));
  e.setAttribute("aria-label", `${rankOf(c)} of ${suitNames[suitOf(c)]}`);
  return e;
}

function corners(c: number): Node[] {
  const symbol = suits[suitOf(c)] ?? "";
  return [make("span", "rank", rankOf(c)), make("span", "pip", symbol), make("span", "rank low", rankOf(c))];
}

/** story describes the last event, and the next turn. */
function story(t: Table, all: readonly Seat[], own: number, left: number): string {
  const who = (i: number): string => (i === own ? "You" : (all[i]?.Player ?? "Somebody"));
  const have = (i: number): string => (i === own ? "You have" : `${who(i)} has`);
  switch (t.Phase) {
    case Phase.Waiting: {
      const more = t.Players - all.length;
      return `Waiting for ${more} more ${more === 1 ? "player" : "players"}.${t.Code ? ` Tell them the code ${t.Code}.` : ""}`;
    }
    case Phase.Pausing:
      return `${have(t.Winner)} won round ${t.Round}. The next one begins in ${left} s.`;
    case Phase.Over:
      return `${have(t.Winner)} won the match! Who stays plays again in ${left} s.`;
  }
  const last = t.Turns === 0 ? "The cards are dealt." : t.Drew ? `${who(t.Mover)} drew a card.` : `${who(t.Mover)} played ${nameOf(t.Top)}.`;
  return own === t.Turn ? `${last} Your turn: ${left} s` : `${last} ${who(t.Turn)} to play: ${left} s`;
}
