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

// ask sends a request.
func (d *door) ask(ctx context.Context, method, path string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, doorTime)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, "http://"+d.at+path, nil)
	if err != nil {
		return err
	}
	q.Header.Set("Authorization", "Bearer "+d.token)
	a, err := d.http.Do(q)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(a.Body, 8<<20))
	if err := errors.Join(err, a.Body.Close()); err != nil {
		return err
	}
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %d %.200s", method, path, a.StatusCode, body)
	}
	return json.Unmarshal(body, answer)
}

// bots play until their context ends.
type bots struct {
	door   *door
	ledger *ledger
	dialer *client.Dialer
	stay   time.Duration // average time in a room
	still  func() bool   // moves have ended
}

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
		c, err := b.join(ctx, name)
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
func (b *bots) join(ctx context.Context, name string) (*client.Client, error) {
	var m match
	if err := b.door.ask(ctx, http.MethodPost, fmt.Sprintf("/match?kind=%s&max_clients=%d", kindTable, seats), &m); err != nil {
		return nil, err
	}
	for _, a := range m.Addresses {
		if a.Carrier == "quic" && len(m.Tickets) > 0 {
			return b.dialer.Dial(ctx, a.Address, client.Config{
				Schema: schema, Ticket: m.Tickets[0], Join: player{name},
				Reconnect: client.Reconnect{GiveUp: 3 * time.Second},
			})
		}
	}
	return nil, fmt.Errorf("room %s has no address", m.Room)
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
		if now := time.Now(); now.After(next) && !b.still() {
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
				b.ledger.entered(name, a.Place)
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
