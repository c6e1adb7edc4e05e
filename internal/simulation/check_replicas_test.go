package simulation

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/bridge"
)

// replicas checks state and recordings. The documents: "State" and "Record and replay" in
// ARCHITECTURE.md, WIRE.md, and the comments of netloop.Object, Grid and NewReplay.
//
//   - At rest each client has exactly the objects that it may see, with the fields that it may read
//     as they are on the server, with the tick of the last change that it may see, and the digests
//     agree.
//   - No client counts a malformed packet.
//   - A recording replays to the same digests.
type replicas struct {
	p       *play
	records []*recorded
}

type recorded struct {
	name string
	*bytes.Buffer
}

// record returns a buffer for the recording of a room.
func (r *replicas) record(name string) *bytes.Buffer {
	one := &recorded{name, new(bytes.Buffer)}
	r.records = append(r.records, one)
	return one.Buffer
}

// verified takes the result of a digest.
func (r *replicas) verified(g *bot, err error) {
	if errors.Is(err, client.ErrDiverged) && !g.forges {
		r.p.fail("replicas", "bot %d: %v", g.n, err)
	}
}

func (r *replicas) rest() {
	for _, name := range r.p.rooms.names() {
		f := r.p.rooms.byName[name] // nil: the room has closed while this check waited for another.
		if f != nil && f.spec.SpectatorDelay > 0 && !r.p.until(r.p.w.Now()+f.spec.SpectatorDelay+time.Second) {
			return
		}
	}
	for _, g := range r.p.all {
		g.checkSurvey()
		if s := g.c.Stats(); !g.forges && (s.Malformed > 0 || s.Unequal > 0) {
			r.p.fail("replicas", "bot %d counts %d malformed packets and %d unequal digests", g.n, s.Malformed, s.Unequal)
		}
		if f := r.p.rooms.byName[g.c.Room()]; g.playing() && f != nil {
			r.compare(f, g)
		}
	}
}

// compare compares the objects of a bot with those that it may see.
func (r *replicas) compare(f *roomFacts, g *bot) {
	have := map[string]replica{}
	r.p.w.Look(g.c, func(t *netloop.Tick) { have = kindsOf(g.d, nil).seen(t) })
	r.p.w.tick(f.key.name, func(t *netloop.Tick) {
		c, ok := t.Client(g.c.ID())
		for other := range t.Clients() {
			if !ok && other.SpectatorFeed() {
				c = other
			}
		}
		if c == nil {
			r.p.fail("replicas", "bot %d is no client of room %q", g.n, f.key.name)
			return
		}
		sent := 4 * time.Duration(max(f.spec.SendEvery, 1)) * f.spec.Rate.Period()
		if r.p.rooms.now()-f.joined <= f.spec.SpectatorDelay+time.Second+sent {
			return // A bot that has come back has changed objects, which others see later.
		}
		versionOf := versions(f.gameRoom, c)
		for _, it := range f.gameRoom.objects(t, have) {
			if !it.alive() {
				continue
			}
			rights, sees, sure := f.gameRoom.rightsOf(c, it)
			own, has := have[it.id()]
			delete(have, it.id())
			switch want := it.text(rights); {
			case sure && sees != has:
				r.p.fail("replicas", "bot %d in room %q: it may see %s: %v, and has it: %v; %s", g.n, f.key.name, it.id(), sees, has, want)
			case has && own.text != want:
				r.p.fail("replicas", "bot %d in room %q: %s is %s, and it has %s", g.n, f.key.name, it.id(), want, own.text)
			case has && ok && own.tick != versionOf(it):
				r.p.fail("replicas", "bot %d in room %q: it has %s of tick %d, want that of %d", g.n, f.key.name, it.id(), own.tick, versionOf(it))
			}
		}
		for _, id := range slices.Sorted(maps.Keys(have)) {
			r.p.fail("replicas", "bot %d in room %q has %s, which does not exist: %s", g.n, f.key.name, id, have[id].text)
		}
	})
}

// versions returns a function that returns the tick of an object's last change which a client may
// see.
func versions(h *gameRoom, c *netloop.Client) func(it item) uint64 {
	for _, one := range bridge.Netloop.Room(h.room).Clients() {
		if one.ID() == uint64(c.ID()) {
			return func(it item) uint64 { return one.Peer().View(it.core().Slot()).Version(it.core()) }
		}
	}
	return nil
}

// objects returns the items of a room and the seats of its players. Seats that have just changed
// are removed from the objects of a client instead.
func (h *gameRoom) objects(t *netloop.Tick, have map[string]replica) []item {
	switch m := h.seats; {
	case m == nil:
		return h.items
	case m.unsettled(t):
		maps.DeleteFunc(have, func(id string, _ replica) bool { return strings.HasPrefix(id, h.d.hands.Name()) })
		return h.items
	default:
		return append(slices.Clip(h.items), m.items()...)
	}
}

// replay runs the recordings again.
func (r *replicas) replay() {
	for i, one := range r.records {
		shadow := newPlay(r.p.story)
		shadow.shadow = true
		again, err := netloop.NewReplay(netloop.Config{}, shadow.game(), bytes.NewReader(one.Bytes()))
		for err == nil {
			_, err = again.Step()
		}
		var unrecorded *netloop.NotReplayable
		if !errors.Is(err, io.EOF) && !errors.As(err, &unrecorded) {
			r.p.fail("recordings", "room %q: %v", one.name, err)
		}
		if n := shadow.keeps.calls + shadow.resources.calls; n > 0 {
			r.p.fail("recordings", "a replay of room %q calls the store and the resources of the server %d times", one.name, n)
		}
		if n := r.p.story.Seed; i == 0 && n%4 == 0 {
			r.alter(one, n)
		}
	}
}
