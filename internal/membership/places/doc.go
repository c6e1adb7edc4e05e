// Package places keeps each player in one room of a cluster. The server of the room has the name of
// the player, which it claims before it admits the player, and gives back when the seat ends:
//
//	admission ─▶ Claim ─▶ another room of this server: its client is kicked
//	                  └─▶ ClaimPlayer ─▶ ErrTaken ─▶ call "place" ─▶ Take: the client there is
//	                      kicked, or is on its way here; the name is given back ─▶ ClaimPlayer
//	the seat ends ─▶ Free ─▶ ReleasePlayer
//	a newer claim after a partition ─▶ Lost: the client is kicked
//
// A kicked client has left before the newcomer is admitted: the game has saved its state.
package places
