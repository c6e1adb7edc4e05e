package inspect

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// A move has the state of its newest step, and the time since it began.
func TestAMoveHasItsNewestStep(t *testing.T) {
	m, wall := new(Moves), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m.Begin(7, Move{Time: wall, Out: true, Client: 3, FromRoom: "elm", ToServer: "b", ToRoom: "oak", State: MoveReserved}, 2*time.Second, 3*time.Second)
	m.Begin(9, Move{ToRoom: "ash", State: MoveBegun}, 4*time.Second, 4*time.Second)
	m.Step(7, MoveLeft, "", 5*time.Second)
	m.Step(8, MoveArrived, "of a move that is not known", 5*time.Second)
	m.Step(7, MoveArrived, "", 6*time.Second)
	m.Step(7, MoveLeft, "told after the arrival", 7*time.Second)
	m.Step(7, MoveArrived, "told again", 8*time.Second)
	m.Step(9, MoveReturned, "no seats", 7*time.Second)
	list := m.List()
	if len(list) != 2 {
		t.Fatalf("%+v", list)
	}
	if got, want := list[1], (Move{
		Time: wall, Out: true, Client: 3, FromRoom: "elm", ToServer: "b", ToRoom: "oak", State: MoveArrived,
		Took: 4 * time.Second, began: 2 * time.Second,
	}); got != want {
		t.Errorf("%+v, want\n%+v", got, want)
	}
	m.Step(7, MoveReplaced, "", 9*time.Second)
	m.Step(7, MoveArrived, "", 9*time.Second)
	if got := m.List()[1]; got.State != MoveReplaced || got.Took != 7*time.Second {
		t.Errorf("%+v", got)
	}
	if got := list[0]; got.ToRoom != "ash" || got.State != MoveReturned || got.Text != "no seats" || got.Took != 3*time.Second {
		t.Errorf("%+v", got)
	}
}

// The newest moves are listed, the newest first. Later steps of a move whose first step was dropped
// are ignored.
func TestMovesKeepTheNewest(t *testing.T) {
	m := new(Moves)
	for n := range uint64(3 * moveSteps) {
		m.Begin(n, Move{Client: n, State: MoveReserved}, 0, 0)
	}
	m.Step(0, MoveArrived, "", 0)
	list := m.List()
	var ids []uint64
	for _, move := range list {
		ids = append(ids, move.Client)
	}
	if len(list) != MaxMoves || ids[0] != 3*moveSteps-1 || !slices.IsSortedFunc(ids, func(a, b uint64) int { return int(b) - int(a) }) {
		t.Errorf("%d moves: %d", len(list), ids)
	}
}

// A step that is being written, or that a later one has replaced, is left out. Without a cluster
// nothing is stored.
func TestMovesLeaveOutStepsInChange(t *testing.T) {
	m := new(Moves)
	m.Begin(1, Move{Client: 1, State: MoveReserved}, 0, 0)
	m.next.Add(1) // A writer has the number 2, and has not stored its step.
	// A writer that is ahead.
	m.steps[2].Store(&moveStep{number: 2 + moveSteps, key: 1, state: MoveLeft})
	m.Begin(3, Move{Client: 3, State: MoveReserved}, 0, 0)
	if list := m.List(); len(list) != 2 || list[1].State != MoveReserved {
		t.Errorf("%+v", list)
	}
	var none *Moves
	none.Begin(1, Move{}, 0, 0)
	none.Step(1, MoveLeft, "", 0)
	if list := none.List(); list == nil || len(list) != 0 {
		t.Error(fmt.Sprint(list))
	}
}
