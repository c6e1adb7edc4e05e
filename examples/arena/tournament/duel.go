package main

import (
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/phase"
	"github.com/netloop/netloop/seats"
)

// Waiting is a client's place in the lobby. No other client has it.
type Waiting struct {
	Queued bool             // for a duel; false for a client that only watches
	Until  netloop.Deadline // the expected end of the wait, zero before the first duel
}

// Duel is the public state of a duel.
type Duel struct {
	Playing bool
	Over    bool
	Winner  string      `net:"max=16"` // after the end; "" is a draw
	Clock   phase.State // of the wait for players, the duel, or its end
}

// Place is the seat of a player.
type Place struct {
	Presence seats.Presence
	Player   string `net:"max=16"`
	Score    int32
}

// Outcome is the result of a duel, for the lobby.
type Outcome struct {
	Players []string `net:"max=2,each=16"`
	Winner  string   `net:"max=16"`
}

// The declarations beside those of the arena.
var (
	Waits  = netloop.NewClass[Waiting](arena.Schema, "waiting")
	Duels  = netloop.NewClass[Duel](arena.Schema, "duel")
	Places = netloop.NewClass[Place](arena.Schema, "place")
	Result = netloop.NewRPC[Outcome](arena.Schema, "duel.result", netloop.ServerOnly())
)

const (
	duelKind   = "duel"
	startTime  = 20 * time.Second // until both players are here
	returnTime = 20 * time.Second // for an absent player
	overTime   = 5 * time.Second  // for the result
)

// duel is the state of a duel's room.
type duel struct {
	length time.Duration
	shown  *netloop.Object[Duel]
	seats  *seats.Seats[Place]
	clock  *phase.Timer
	begun  bool
}

// openDuel opens the arena for two players.
func (g *Game) openDuel(r *netloop.Room) error {
	if err := g.arena.Open(r); err != nil {
		return err
	}
	d := &duel{length: g.cfg.Duel}
	d.clock = phase.New(func(t *netloop.Tick) *phase.State { return &d.shown.Edit(t).Clock })
	d.seats = seats.New(r, seats.Config[Place]{
		Class: Places, Presence: func(p *Place) *seats.Presence { return &p.Presence },
		Changed: func(t *netloop.Tick, at *seats.Seat[Place]) {
			if at.Status() == seats.Gone && d.shown.State().Playing {
				d.finish(t) // The other player wins.
			}
		},
	})
	r.OnStart(func(t *netloop.Tick) {
		d.shown = Duels.Spawn(t, Duel{})
		d.clock.Begin(t, phase.Phase{For: startTime, End: d.leave})
	})
	r.OnJoin(d.join)
	r.On(netloop.Update, "tournament.scores", d.score)
	return nil
}

// join seats a player, and gives the score of the seat to the new ship. The second player begins
// the duel.
func (d *duel) join(t *netloop.Tick, c *netloop.Client) error {
	at := d.seats.Sit(t, c)
	switch {
	case at == nil && c.Spectator():
		return nil
	case at == nil:
		return netloop.Refuse(netloop.CodeFull, "others duel here")
	}
	at.Object.Edit(t).Player = at.Player()
	for ship := range arena.Ships.Owned(t, c.ID()) {
		ship.Edit(t).Score = at.Object.State().Score
	}
	if all := d.seats.All(); !d.begun && len(all) == 2 && all[0].Here() && all[1].Here() {
		d.begin(t)
	}
	return nil
}

// begin begins the duel: hits count from now on.
func (d *duel) begin(t *netloop.Tick) {
	d.begun = true
	d.seats.Lock(t, returnTime)
	for ship := range arena.Ships.All(t) {
		ship.Edit(t).Score = 0
	}
	d.shown.Edit(t).Playing = true
	d.clock.Begin(t, phase.Phase{For: d.length, End: d.finish})
}

// score is the system tournament.scores: it copies the scores of the ships to the seats.
func (d *duel) score(t *netloop.Tick) {
	if !d.shown.State().Playing {
		return
	}
	for _, at := range d.seats.All() {
		for ship := range arena.Ships.Owned(t, at.Object.Owner()) {
			if is := ship.State().Score; is != at.Object.State().Score {
				at.Object.Edit(t).Score = is
			}
		}
	}
}

// finish ends the duel and tells the lobby the winner. A player that is gone loses.
func (d *duel) finish(t *netloop.Tick) {
	o := Outcome{Players: d.seats.Players()}
	switch a, b := d.seats.All()[0], d.seats.All()[1]; {
	case (a.Status() == seats.Gone) != (b.Status() == seats.Gone):
		o.Winner = a.Player()
		if a.Status() == seats.Gone {
			o.Winner = b.Player()
		}
	case a.Object.State().Score > b.Object.State().Score:
		o.Winner = a.Player()
	case a.Object.State().Score < b.Object.State().Score:
		o.Winner = b.Player()
	}
	s := d.shown.Edit(t)
	s.Playing, s.Over, s.Winner = false, true, o.Winner
	Result.SendRoom(t, "", o, nil)
	d.clock.Begin(t, phase.Phase{For: overTime, End: d.leave})
}

// leave moves all clients back to the lobby. The empty room closes.
func (d *duel) leave(t *netloop.Tick) {
	for c := range t.Clients() {
		id := c.ID()
		t.Reserve("", netloop.Reservation{Spectator: c.Spectator()}, func(t *netloop.Tick, lobby []netloop.Ticket, err error) {
			if c, here := t.Client(id); here && err == nil {
				c.Move(t, lobby[0])
			}
		})
	}
	d.clock.Begin(t, phase.Phase{For: overTime, End: d.leave}) // The lobby may have been full.
}
