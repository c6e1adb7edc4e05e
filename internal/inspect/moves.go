package inspect

import (
	"slices"
	"sync/atomic"
	"time"
)

const (
	// MaxMoves is the number of newest moves that Moves lists.
	MaxMoves = 64
	// moveSteps is the number of newest steps that Moves stores: four of each move.
	moveSteps = 4 * MaxMoves
)

// Moves stores the newest steps of moves to and from other servers in a ring, as Log stores lines:
// neither writers nor readers wait. A nil Moves stores nothing.
type Moves struct {
	next  atomic.Uint64 // number of the newest step
	steps [moveSteps]atomic.Pointer[moveStep]
}

// moveStep is one step of a move. It is immutable.
type moveStep struct {
	number uint64 // from 1
	key    uint64
	at     time.Duration // of the server's clock
	state  MoveState
	text   string
	begun  *Move // in the first step; nil in later ones
}

// MoveState is the state of a move.
type MoveState string

// The states of a move. The first four are states of a room, too.
const (
	MoveBegun    MoveState = "moving"     // a room runs no tick meanwhile
	MoveArrived  MoveState = "arrived"    // the other server has it
	MoveReturned MoveState = "returned"   // it continues on the server that it was to leave
	MoveFailed   MoveState = "failed"     // it was not possible; the client or room has not left
	MoveReserved MoveState = "reserved"   // the client has a ticket for a seat of the other server
	MoveLeft     MoveState = "left"       // its connection has ended, its seat is kept
	MoveExpired  MoveState = "expired"    // it has left and has arrived nowhere; its seat is free
	MoveReplaced MoveState = "taken over" // another program of the player has its place
)

// Move is the move of a client, or of a room, between two servers.
type Move struct {
	Time   time.Time `json:"time"`   // of its first step
	Out    bool      `json:"out"`    // from this server; false: to it
	Client uint64    `json:"client"` // its id in FromRoom; 0: the room itself moves
	// FromServer, FromRoom, ToServer and ToRoom are the ends of the move.
	FromServer string        `json:"from_server"` // id of the server that it leaves
	FromRoom   string        `json:"from_room"`   // the room that it leaves
	ToServer   string        `json:"to_server"`   // id of the server that it moves to
	ToRoom     string        `json:"to_room"`     // the room that it moves to
	State      MoveState     `json:"state"`       // after the newest step
	Text       string        `json:"text"`        // details of the newest step, such as an error
	Took       time.Duration `json:"took_ns"`     // from its first to its newest step
	began      time.Duration
}

// Begin stores the first step of a move. The move began at a time of the server's clock, and has
// its present state now. The key identifies the move in later steps; it is not listed.
func (m *Moves) Begin(key uint64, move Move, began, now time.Duration) {
	move.began = began
	m.keep(moveStep{key: key, at: now, state: move.State, text: cut(move.Text), begun: &move})
}

// Step stores a later step of a move.
func (m *Moves) Step(key uint64, state MoveState, text string, now time.Duration) {
	m.keep(moveStep{key: key, at: now, state: state, text: cut(text)})
}

func (m *Moves) keep(s moveStep) {
	if m == nil {
		return
	}
	s.number = m.next.Add(1)
	m.steps[s.number%moveSteps].Store(&s)
}

// List returns the newest moves whose first step is stored, the newest first. Any goroutine may
// call it.
func (m *Moves) List() []Move {
	all := []Move{}
	if m == nil {
		return all
	}
	index := map[uint64]int{}
	last := m.next.Load()
	for n := last - min(last, moveSteps) + 1; n <= last; n++ {
		// A nil step is being written; a step with another number has replaced it.
		s := m.steps[n%moveSteps].Load()
		if s == nil || s.number != n {
			continue
		}
		if s.begun != nil {
			index[s.key] = len(all)
			all = append(all, *s.begun)
		}
		if i, ok := index[s.key]; ok && (s.begun != nil || all[i].State.precedes(s.state)) {
			move := &all[i]
			move.State, move.Text, move.Took = s.state, s.text, s.at-move.began
		}
	}
	return newest(all)
}

// precedes reports whether a later step can change the state to another one. The report of an
// arrival can be repeated, and can be faster than the end of the client's old connection.
func (s MoveState) precedes(next MoveState) bool {
	return s != MoveReplaced && (s != MoveArrived || next == MoveReplaced)
}

// newest returns the last MaxMoves moves in reverse order.
func newest(all []Move) []Move {
	slices.Reverse(all)
	return all[:min(len(all), MaxMoves)]
}
