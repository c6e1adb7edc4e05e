package main

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/persist"
	"github.com/netloop/netloop/persist/files"
)

// The game of the fleet: rooms that move their players to other rooms of the cluster, on request. A
// room stores the number of its answers to each player, and moves to another server when its server
// is drained.

var schema = netloop.NewSchema("fleet", 1, 0)

var (
	where  = netloop.NewCall[whereQuery, answer](schema, "where")
	wander = netloop.NewRPC[wanderer](schema, "wander", netloop.Limit(5, 10))
)

type whereQuery struct{}

// place is the room that answers: Incarnation numbers the rooms of one name.
type place struct {
	Room        string
	Server      string
	Incarnation uint64
	Player      string
}

// answer is a place with the number of answers that the player has got there, this one included.
// Opened and Admitted are the times at which the room was opened and has admitted the player, in
// milliseconds of the machine's clock, which all servers share. Ticket: it had a ticket.
type answer struct {
	Place            place
	Number           uint32
	Opened, Admitted uint64
	Ticket           bool
}

// tally is the state of a room: the answers to each player.
type tally map[string]uint32

// wanderer asks for a move to another room.
type wanderer struct{}

// admitted is the admission of a player. Admissions are on other goroutines than the room's ticks.
type admitted struct {
	at     uint64
	ticket bool
}

type admissions struct {
	mu  sync.Mutex
	all map[string]admitted
}

func (a *admissions) add(who string, ticket bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all[who] = admitted{millis(), ticket}
}

func (a *admissions) of(who string) admitted {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[who]
}

func millis() uint64 { return uint64(time.Now().UnixMilli()) }

const (
	kindTable = "table"
	seats     = 8           // of a table
	saveEvery = time.Second // least time between two saves of a room
)

type game struct {
	keeper *persist.Keeper
}

// asStore is the environment variable with the folder of the rooms' states, which the servers
// share: they are on one machine.
const asStore = "NETLOOP_FLEET_STORE"

// asSlow is the environment variable with the average time that a room takes to store its state
// for another server. It leaves time for a crash in the middle.
const asSlow = "NETLOOP_FLEET_SLOW"

// newGame opens the store.
func newGame() (game, error) {
	store, err := files.Open(os.Getenv(asStore))
	if err != nil {
		return game{}, err
	}
	return game{persist.New(store)}, nil
}

func (game) Schema() *netloop.Schema { return schema }

// player is the parameter of a join.
type player struct{ Name string }

// OpenFor implements netloop.Opener: a table that has ended is opened again by its name.
func (game) OpenFor(_ context.Context, name string, _ *netloop.Join) (netloop.RoomSpec, error) {
	if !strings.HasPrefix(name, kindTable+"-") {
		return netloop.RoomSpec{}, netloop.Refuse(netloop.CodeRoomUnknown, "there is no room %q", name)
	}
	return netloop.RoomSpec{Kind: kindTable, MaxClients: seats}, nil
}

func (g game) Open(r *netloop.Room) error {
	answers, counted := tally{}, func(*netloop.Tick) {}
	opened, admissions := millis(), admissions{all: map[string]admitted{}}
	if r.Spec().Kind == kindTable {
		saver, stored, err := persist.Keep(r, persist.Config[tally]{Keeper: g.keeper, Save: func() *tally { return &answers }, Every: saveEvery})
		if err != nil {
			return err
		}
		if stored != nil {
			answers = *stored
		}
		counted = saver.Changed
		if slow, err := time.ParseDuration(os.Getenv(asSlow)); err == nil {
			r.OnHandOver(netloop.HandOver{Store: func(ctx context.Context) error { clock.Sleep(ctx, rand.N(2*slow)); return nil }})
		}
	}
	r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
		var p player
		if err := j.Params(&p); err != nil {
			return err
		}
		j.Subject = cmp.Or(j.Subject, p.Name)
		admissions.add(j.Subject, j.Ticket)
		return nil
	})
	where.Handle(r, func(t *netloop.Tick, from *netloop.Client, _ whereQuery) (answer, error) {
		who := from.Join().Subject
		answers[who]++
		counted(t)
		in := admissions.of(who)
		return answer{place{r.Spec().Name, r.Server().ID(), r.Incarnation(), who}, answers[who], opened, in.at, in.ticket}, nil
	})
	wander.Handle(r, func(t *netloop.Tick, from *netloop.Client, _ wanderer) error {
		id, seed := from.ID(), t.Rand().Uint64()
		netloop.Go(t, func(ctx context.Context) (netloop.Ticket, error) {
			return ticketElsewhere(ctx, r, rand.New(rand.NewPCG(seed, 0)))
		}, func(t *netloop.Tick, ticket netloop.Ticket, err error) {
			if c, here := t.Client(id); here && err == nil {
				c.Move(t, ticket)
			}
		})
		return nil
	})
	return nil
}

var errNowhere = errors.New("there is no other table")

// ticketElsewhere reserves a seat at another table of the cluster.
func ticketElsewhere(ctx context.Context, r *netloop.Room, random *rand.Rand) (netloop.Ticket, error) {
	own := r.Spec().Name
	all := netloop.ListRooms(r.Server(), netloop.RoomFilter[struct{}]{Kind: kindTable, Free: 1, Limit: -1})
	for range min(len(all), 3) {
		l := all[random.IntN(len(all))]
		if l.Name == own {
			continue
		}
		tickets, err := r.Server().Reserve(ctx, l.Name, netloop.Reservation{})
		if err == nil {
			return tickets[0], nil
		}
	}
	return "", errNowhere
}
