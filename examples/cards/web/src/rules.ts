// The rules that the page needs: the server has all of them, and decides.

/** Suits in their order on the wire. */
export const suits = ["♣", "♦", "♥", "♠"] as const;
export const suitNames = ["clubs", "diamonds", "hearts", "spades"] as const;
const ranks = ["A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K"];

/** The statuses of a seat's player: seats.Status of Go. */
export const Status = { Here: 0, Away: 1, Gone: 2 } as const;

/** The phases of a table. */
export const Phase = { Waiting: 0, Playing: 1, Pausing: 2, Over: 3 } as const;

export const suitOf = (card: number): number => Math.floor(card / 13);
export const rankOf = (card: number): string => ranks[card % 13] ?? "?";
export const isEight = (card: number): boolean => card % 13 === 7;
export const isRed = (suit: number): boolean => suit === 1 || suit === 2;
export const nameOf = (card: number): string => rankOf(card) + (suits[suitOf(card)] ?? "");

/** fits reports whether a card may be played. */
export function fits(card: number, top: number, suit: number): boolean {
  return isEight(card) || suitOf(card) === suit || card % 13 === top % 13;
}
