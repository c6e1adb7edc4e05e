package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/clock"
)

// door is a director, as a login service uses it.
type door struct {
	at, token string
	http      http.Client
}

// match is a seat that a director has found.
type match struct {
	Room, Server string
	Tickets      []string
	Addresses    []struct{ Carrier, Address string }
}

const doorTime = 5 * time.Second // of a request

// ask sends a request, and decodes the answer.
func (d *door) ask(ctx context.Context, method, path string, answer any) error {
	body, err := d.text(ctx, method, path)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(body), answer)
}

// text sends a request, and returns the answer. An answer other than 200 is an error.
func (d *door) text(ctx context.Context, method, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, doorTime)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, "http://"+d.at+path, nil)
	if err != nil {
		return "", err
	}
	q.Header.Set("Authorization", "Bearer "+d.token)
	a, err := d.http.Do(q)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(io.LimitReader(a.Body, 8<<20))
	if err := errors.Join(err, a.Body.Close()); err != nil {
		return "", err
	}
	if a.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s %s: %d %.200s", method, path, a.StatusCode, body)
	}
	return string(body), nil
}

// bots play until their context ends.
type bots struct {
	door   *door
	ledger *ledger
	dialer *client.Dialer
	stay   time.Duration // average time in a room
	still  *atomic.Bool  // the bots stay in their rooms
	// patient is the time for which each fourth bot tries to return to a lost seat; others try for
	// giveUp.
	patient time.Duration
}

const giveUp = 3 * time.Second

const (
	frameTime = 50 * time.Millisecond // of a bot
	retryTime = 500 * time.Millisecond
)

// play plays one bot: it finds a seat, wanders from room to room, and begins again when it has lost
// its seat.
func (b *bots) play(ctx context.Context, n int) {
	name := fmt.Sprint("bot ", n)
	random := rand.New(rand.NewPCG(uint64(n), 1))
	for clock.Sleep(ctx, time.Duration(random.Int64N(int64(retryTime)))) {
		c, err := b.join(ctx, name, n)
		if err != nil {
			if ctx.Err() == nil {
				b.ledger.refusal(err)
			}
			if !clock.Sleep(ctx, retryTime) {
				return
			}
			continue
		}
		b.wander(ctx, c, name, random)
		_ = c.Close() // It may have lost its server.
		why := c.Closed()
		b.ledger.left(name, ctx.Err() == nil && why != nil && why.Code != netloop.CodeLeft)
	}
}

// join finds a seat, and takes it.
func (b *bots) join(ctx context.Context, name string, n int) (*client.Client, error) {
	m, err := b.door.match(ctx)
	if err != nil {
		return nil, err
	}
	patience := giveUp
	if n%4 == 0 {
		patience = max(b.patient, giveUp)
	}
	return b.take(ctx, m, client.Config{Join: player{name}, Reconnect: client.Reconnect{GiveUp: patience}})
}

// match asks the director for a seat at a table.
func (d *door) match(ctx context.Context) (m match, err error) {
	err = d.ask(ctx, http.MethodPost, fmt.Sprintf("/match?kind=%s&max_clients=%d", kindTable, seats), &m)
	return m, err
}

// take takes the seat of a match.
func (b *bots) take(ctx context.Context, m match, cfg client.Config) (*client.Client, error) {
	for _, a := range m.Addresses {
		if a.Carrier == "quic" && len(m.Tickets) > 0 {
			cfg.Schema, cfg.Ticket = schema, m.Tickets[0]
			return b.dialer.Dial(ctx, a.Address, cfg)
		}
	}
	return nil, fmt.Errorf("room %s has no address", m.Room)
}

// visit joins a room by its name, at the address of any server, and returns its first answer.
func (b *bots) visit(ctx context.Context, addr, room, name string) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, doorTime)
	defer cancel()
	c, err := b.dialer.Dial(ctx, addr, client.Config{Schema: schema, Room: room, Join: player{name}, Reconnect: client.Reconnect{Off: true}})
	if err != nil {
		return a, err
	}
	defer c.Close() //nolint:errcheck // The visit is over.
	return b.whereIs(ctx, c, name)
}

// whereIs asks a client's room where it is, until it answers.
func (b *bots) whereIs(ctx context.Context, c *client.Client, name string) (a answer, err error) {
	answered := false
	client.Call(c, where, whereQuery{}, func(_ *netloop.Tick, got answer, failed error) { a, err, answered = got, failed, true })
	for !answered && c.Closed() == nil && clock.Sleep(ctx, frameTime) {
		c.Step(frameTime)
	}
	switch {
	case answered && err == nil:
		b.ledger.entered(name, a)
		b.ledger.answered(name, a)
		b.ledger.left(name, false)
		return a, nil
	case answered:
		return a, err
	case c.Closed() != nil:
		return a, c.Closed()
	}
	return a, fmt.Errorf("the room does not answer: %w", ctx.Err())
}

// wander asks where the bot is in each frame, moves from time to time, and returns when the client
// has lost its seat, or when ctx ends.
func (b *bots) wander(ctx context.Context, c *client.Client, name string, random *rand.Rand) {
	var asking, leaves bool
	var at place
	last := time.Now()
	next := last.Add(b.staying(random))
	c.On(netloop.Update, "bot", func(t *netloop.Tick) {
		if c.State().Phase != client.Playing {
			asking = false
			return
		}
		if now := time.Now(); now.After(next) && !b.still.Load() {
			next = now.Add(b.staying(random))
			if random.IntN(4) == 0 {
				leaves = true // It finds its next seat by the director.
				return
			}
			client.Send(c, wander, wanderer{})
		}
		if asking {
			return
		}
		asking = true
		client.Call(c, where, whereQuery{}, func(_ *netloop.Tick, a answer, err error) {
			asking = false
			if err != nil {
				return
			}
			now := time.Now()
			if a.Place != at {
				b.ledger.entered(name, a)
				if at != (place{}) {
					b.ledger.gap(now.Sub(last), a.Place.Room == at.Room)
				}
				at = a.Place
			}
			b.ledger.answered(name, a)
			last = now
		})
	})
	for c.Closed() == nil && ctx.Err() == nil && !leaves {
		c.Step(frameTime)
		clock.Sleep(ctx, frameTime)
	}
}

// staying returns the time until a bot moves on.
func (b *bots) staying(random *rand.Rand) time.Duration {
	return b.stay/2 + time.Duration(random.Int64N(int64(cmp.Or(b.stay, 1))))
}
