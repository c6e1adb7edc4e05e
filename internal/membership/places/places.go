package places

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"sync"
	"time"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/membership"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// Places has the places of the players of a server. Any goroutine may use it.
type Places struct {
	cfg     Config
	waiting sync.WaitGroup

	mu  sync.Mutex
	all map[string]*place // by key
	// The keys of places without a seat whose players move to another room of this server; some
	// have arrived since.
	kept []string
}

// Config describes the places of a server.
type Config struct {
	Member  *membership.Member
	Refuses bool // a player with a place elsewhere is refused
	Drops   *metrics.Family
}

// Room is a room of the server. Its values are compared.
type Room interface {
	// KickPlayer kicks the clients of a player, and waits for a tick, or the end of ctx.
	KickPlayer(ctx context.Context, subject string, code transport.Code, text string)
}

// place is the place of one player. The mutex of Places guards claims, moving, keep and busy.
// The other fields belong to the running change.
type place struct {
	subject string
	epoch   cluster.Epoch // of the claim of the player's name; 0: another server may have it
	room    Room
	from    uint64        // number of the move by which the client has come from another server
	claims  int           // admissions and seats of the room that have the place
	moving  uint64        // number of the newest move of the client to another server
	keep    bool          // a client moves to another room of this server
	busy    chan struct{} // closed when the running change has ended; nil: none runs
}

const (
	// Time is the time for which an admission waits for the player's place: for a tick of the
	// other room, a call, and the store.
	Time = 3 * time.Second
	// retry is the time between two attempts to kick the clients of a place, which may not have
	// entered their room yet, and between two calls of a server that runs too many.
	retry = 5 * time.Millisecond
	// maxKept bounds the names that are kept for players between two rooms of this server. The
	// oldest is given back first.
	maxKept = 1024
)

var (
	errPlaceBusy  = transport.Refuse(transport.CodeBusy, "the cluster does not answer whether you are in another room, or that room has not let you go yet: try again later")
	errPlaceTaken = transport.Refuse(transport.CodeRefused, "you are in another room already")
)

// textReplaced is the reason for a client whose player has joined another room.
const textReplaced = "you have joined another room"

// New returns the places of a server that has not joined its cluster yet.
func New(cfg Config) *Places {
	return &Places{cfg: cfg, all: map[string]*place{}}
}

// keyOf returns the name of a player in the cluster. It has no name of a person.
func keyOf(subject string) string {
	sum := sha256.Sum256([]byte(subject))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Of returns the places of the players of a room.
func (v *Places) Of(r Room) room.Places { return roomPlaces{v, r} }

// roomPlaces implements room.Places.
type roomPlaces struct {
	*Places
	r Room
}

// Claim implements room.Places.
func (v roomPlaces) Claim(ctx context.Context, subject string, number uint64) error {
	ctx, cancel := context.WithTimeout(ctx, Time)
	defer cancel()
	key := keyOf(subject)
	p, err := v.begin(ctx, key, true)
	if err != nil {
		return err
	}
	defer v.end(key, p)
	p.subject = subject
	if v.elsewhere(p, v.r) {
		if v.cfg.Refuses {
			v.cfg.Drops.Add(1, "place", "refused")
			return errPlaceTaken
		}
		v.cfg.Drops.Add(1, "place", "taken_over")
		if err := v.clear(ctx, p); err != nil {
			return err
		}
	}
	if p.epoch == 0 {
		if p.epoch, err = v.take(ctx, key, number); err != nil {
			return err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	p.room, p.from, p.keep = v.r, number, false
	p.claims++
	return nil
}

// Regain implements room.Places.
func (v roomPlaces) Regain(ctx context.Context, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, Time)
	defer cancel()
	key := keyOf(subject)
	p, err := v.begin(ctx, key, false)
	if err != nil || p == nil {
		return err
	}
	defer v.end(key, p)
	if p.epoch == 0 {
		p.epoch, err = v.take(ctx, key, p.moving)
	}
	return err
}

// Keep implements room.Places.
func (v *Places) Keep(subject string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if p := v.all[keyOf(subject)]; p != nil {
		p.keep = true
	}
}

// Free implements room.Places.
func (v *Places) Free(subject string) {
	key := keyOf(subject)
	v.mu.Lock()
	defer v.mu.Unlock()
	if p := v.all[key]; p != nil {
		p.claims--
		v.settleLocked(key, p)
	}
}

// Moves records the number of a move of a player to another server: that server may take the
// player's name while the seat is kept here.
func (v *Places) Moves(subject string, number uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if p := v.all[keyOf(subject)]; p != nil {
		p.moving = number
	}
}

// begin waits for the running change of a place and begins another one, until end. Unless create
// is set, it returns nil if there is no place.
func (v *Places) begin(ctx context.Context, key string, create bool) (*place, error) {
	for {
		v.mu.Lock()
		p := v.all[key]
		if p == nil && create {
			p = &place{}
			v.all[key] = p
		}
		if p == nil || p.busy == nil {
			if p != nil {
				p.busy = make(chan struct{})
			}
			v.mu.Unlock()
			return p, nil
		}
		busy := p.busy
		v.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			v.cfg.Drops.Add(1, "place", "busy")
			return nil, errPlaceBusy
		}
	}
}

// end ends a change of a place.
func (v *Places) end(key string, p *place) {
	v.mu.Lock()
	defer v.mu.Unlock()
	close(p.busy)
	p.busy = nil
	v.settleLocked(key, p)
}

// settleLocked gives the name of a player without a seat back, or keeps it for a moving one.
func (v *Places) settleLocked(key string, p *place) {
	switch {
	case p.claims > 0 || p.busy != nil:
	case p.epoch == 0:
		delete(v.all, key)
	case p.keep:
		v.kept = append(v.kept, key)
		if len(v.kept) > maxKept {
			oldest := v.kept[0]
			v.kept = v.kept[1:]
			if p := v.all[oldest]; p != nil {
				p.keep = false
				v.settleLocked(oldest, p)
			}
		}
	default:
		p.busy = make(chan struct{})
		v.waiting.Go(func() {
			defer v.end(key, p)
			v.release(context.Background(), key, p)
		})
	}
}

// elsewhere reports whether another room of this server is the place of the player.
func (v *Places) elsewhere(p *place, r Room) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return p.claims > 0 && p.room != r
}

// claimed reports whether a place has a seat.
func (v *Places) claimed(p *place) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return p.claims > 0
}

// clear kicks the clients of a place until it has no seat.
func (v *Places) clear(ctx context.Context, p *place) error {
	for v.claimed(p) {
		p.room.KickPlayer(ctx, p.subject, transport.CodeReplaced, textReplaced)
		if v.claimed(p) && !clock.Sleep(ctx, retry) {
			v.cfg.Drops.Add(1, "place", "busy")
			return errPlaceBusy
		}
	}
	return nil
}

// take claims the name of a player, and asks the server that has it to give it back.
func (v *Places) take(ctx context.Context, key string, number uint64) (cluster.Epoch, error) {
	m := v.cfg.Member
	for m.Health().OK {
		epoch, err := m.ClaimPlayer(ctx, key)
		if err == nil {
			return epoch, nil
		}
		if !errors.Is(err, cluster.ErrTaken) {
			break
		}
		server, err := m.PlayerServer(ctx, key)
		switch {
		case errors.Is(err, cluster.ErrGone):
			continue
		case err == nil && server != m.ID() && !m.Suspect(server):
			err = m.Call(ctx, server, "place", &clusterv1.TakePlace{Player: key, Number: number}, nil)
		case err == nil:
			err = errPlaceBusy // This server is giving the name back, or the other one is lost.
		}
		if refused := (*transport.Refusal)(nil); errors.As(err, &refused) {
			return 0, refused
		}
		if err != nil && !clock.Sleep(ctx, retry) {
			break
		}
	}
	v.cfg.Drops.Add(1, "place", "busy")
	return 0, errPlaceBusy
}

// release gives the name of a player back. The caller has begun a change of the place.
func (v *Places) release(ctx context.Context, key string, p *place) {
	if p.epoch == 0 {
		return
	}
	// After an error the name is free later: the store was told, or the lease ends.
	_ = v.cfg.Member.ReleasePlayer(ctx, key, p.epoch)
	p.epoch = 0
}

// Take gives the name of a player to another server, for a client that joins a room there. The
// number is that of the client's move from or to this server, or 0. The error is a refusal.
func (v *Places) Take(ctx context.Context, key string, number uint64) error {
	p, err := v.begin(ctx, key, false)
	if err != nil || p == nil {
		return err
	}
	defer v.end(key, p)
	if err := v.yield(ctx, p, number); err != nil {
		return err
	}
	v.release(ctx, key, p)
	return nil
}

// yield ends the place of a player for a client at another server. The seat of a client on its way
// there is kept until it has arrived; a client that has returned from here has no seat here.
func (v *Places) yield(ctx context.Context, p *place, number uint64) error {
	returns := number != 0 && number == p.from
	v.mu.Lock()
	leaves := number != 0 && number == p.moving
	v.mu.Unlock()
	switch {
	case p.epoch == 0 || leaves || !v.claimed(p):
		return nil
	case v.cfg.Refuses && !returns:
		return errPlaceTaken
	}
	v.cfg.Drops.Add(1, "place", "taken_over")
	return v.clear(ctx, p)
}

// Lost kicks the clients of a player whose name another server has claimed meanwhile. It does not
// wait.
func (v *Places) Lost(key string, e cluster.Epoch) {
	v.waiting.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cluster.MaxCallTime)
		defer cancel()
		p, err := v.begin(ctx, key, false)
		if err != nil || p == nil {
			return
		}
		defer v.end(key, p)
		if p.epoch == e {
			p.epoch = 0
			v.cfg.Drops.Add(1, "place", "lost")
			_ = v.clear(ctx, p) // After an error no tick of the room runs any more.
		}
	})
}

// Wait waits for the names that are being given back, before the server leaves the cluster.
func (v *Places) Wait() { v.waiting.Wait() }
