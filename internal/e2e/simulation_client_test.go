package e2e_test

import (
	"cmp"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// guest is a client: what it shall have, and what it was told.
type guest struct {
	c      *client.Client
	number int
	link   netlooptest.Link // without its bad moments
	budget int              // bytes per tick

	// Kept by the model.
	id    netloop.ClientID // 0 until it has joined
	in    bool             // the room
	eyes  []eye
	looks []eye // from the next capture on, unless nil
	views map[string][]view

	// By what the client was told.
	told             map[string]telling // by object, while it is spawned
	lives            map[string]uint64  // by object: no lifetime before this tick is to be told
	count            map[string]uint32  // by object: newest N
	err              error              // the first
	log              hash.Hash          // of all that was told
	packets, records uint64             // that had come when it was told last
	streamed         bool               // and whether that came with a record
	tally            *coverage

	gone   bool // it left or vanished
	broken uint64
	until  uint64
	mend   func() // ends what is wrong with its link
}

// telling is what a client is told of an object.
type telling struct {
	kind    kind
	key     string
	text    string
	n       uint32
	changed uint64
	lives   []uint64 // the lifetime of which it is; of a large record it may not be sure
}

func (g *guest) fail(format string, a ...any) {
	g.err = cmp.Or(g.err, fmt.Errorf("client %d, having applied tick %d: "+format, append([]any{g.id, g.c.Stats().Applied}, a...)...))
}

// spawned is told of an object that it does not have, and of each lifetime once.
func (g *guest) spawned(now telling) {
	g.tally.spawns++
	if _, twice := g.told[now.key]; twice {
		g.fail("%s %s spawns twice", now.kind.name(), now.key)
	}
	g.check(&now, g.lives[now.key])
	g.lives[now.key] = now.lives[0] + 1
	g.told[now.key] = now
}

// changed is told of an object that it has, within one lifetime.
func (g *guest) changed(now telling, old string) {
	g.tally.changes++
	before, ok := g.told[now.key]
	if !ok || !strings.HasSuffix(before.text, old) {
		g.fail("%s %s changes from %.200s, was told %.200s", now.kind.name(), now.key, old, before.text)
	}
	if now.changed < before.changed {
		g.fail("%s %s goes from version %d to %d", now.kind.name(), now.key, before.changed, now.changed)
	}
	g.check(&now, 0)
	now.lives = slices.DeleteFunc(now.lives, func(since uint64) bool { return !slices.Contains(before.lives, since) })
	if len(now.lives) == 0 {
		g.fail("%s %s changes, which is told as the same lifetime as before, of %d", now.kind.name(), now.key, before.lives)
	}
	g.told[now.key] = now
}

// despawned is told of an object that it has, and that it shall not have, or not in this lifetime.
func (g *guest) despawned(now telling, last string) {
	g.tally.despawns++
	before, ok := g.told[now.key]
	if !ok || !strings.HasSuffix(before.text, last) {
		g.fail("%s %s despawns with %.200s, was told %.200s", now.kind.name(), now.key, last, before.text)
	}
	applied := g.c.Stats().Applied
	if v := g.between(now.key, applied, applied); len(v) > 0 && slices.Equal(before.lives, []uint64{v[0].since}) {
		g.fail("%s %s despawns, and is visible since %d", now.kind.name(), now.key, v[0].since)
	}
	delete(g.told, now.key)
	fmt.Fprintln(g.log, "-", now.key)
}

// check compares a value with the view of the tick that it came with, and finds out its lifetime,
// which begins no earlier than since. What came over the stream may be of an earlier tick.
func (g *guest) check(now *telling, since uint64) {
	fmt.Fprintln(g.log, now.key, now.text)
	if now.n < g.count[now.key] {
		g.fail("%s %s counts %d after %d", now.kind.name(), now.key, now.n, g.count[now.key])
	}
	g.count[now.key] = now.n
	s := g.c.Stats()
	if s.Packets != g.packets {
		g.streamed = false
	}
	if s.Records != g.records {
		g.streamed = true
	}
	g.packets, g.records = s.Packets, s.Records
	first := s.Applied
	if g.streamed {
		first = now.changed
	}
	views := g.between(now.key, first, s.Applied)
	for _, v := range views {
		if v.since > 0 && v.since >= since && v.text == now.text && !slices.Contains(now.lives, v.since) {
			now.lives = append(now.lives, v.since)
		}
	}
	if len(now.lives) == 0 {
		g.fail("%s %s shows %.200s (version %d), want a lifetime from %d on of %.400s",
			now.kind.name(), now.key, now.text, now.changed, since, fmt.Sprintf("%+v", views))
		now.lives = []uint64{0}
	}
}

// differs compares all that the client has with the model, both ways.
func (g *guest) differs(w *netlooptest.World) (err error) {
	seen := map[string]string{}
	w.Look(g.c, func(t *netloop.Tick) {
		for _, k := range kinds {
			k.has(t, func(key, text string) {
				if told, ok := g.told[key]; !ok || told.text != text {
					err = fmt.Errorf("client %d has %s %s as %.200s, was told %.200s", g.id, k.name(), key, text, told.text)
				}
				seen[key] = text
			})
		}
	})
	if len(seen) != len(g.told) {
		err = fmt.Errorf("client %d has %d objects, was told %d", g.id, len(seen), len(g.told))
	}
	for _, key := range slices.Sorted(maps.Keys(g.views)) {
		v := g.newest(key)
		text, has := seen[key]
		if has != (v.since > 0) || text != v.text || has && !slices.Contains(g.told[key].lives, v.since) {
			err = fmt.Errorf("client %d has %s %v as %.200s of %d, want %.300s", g.id, key, has, text, g.told[key].lives, fmt.Sprintf("%+v", v))
		}
		delete(seen, key)
	}
	for _, key := range slices.Sorted(maps.Keys(seen)) {
		err = fmt.Errorf("client %d has %s, which it never was to have: %.200s", g.id, key, seen[key])
	}
	return err
}

// rtt is no less than the round trip of the guest's link, with what waits in its router.
func (g *guest) rtt() time.Duration {
	rtt := 2 * (g.link.Delay + g.link.Jitter)
	if g.link.Reorder > 0 {
		rtt += 2 * 40 * time.Millisecond
	}
	if g.link.Bandwidth > 0 {
		rtt += 200 * time.Millisecond
	}
	return rtt
}

// rate is how many bytes of records the guest may be sent in a tick: its budget, or what its link
// carries beside headers and acknowledgements.
func (g *guest) rate() int {
	if g.link.Bandwidth == 0 {
		return g.budget
	}
	const packet = 200
	return min(g.budget, g.link.Bandwidth/8/60-packet)
}

// bound is how many ticks the guest may take to have everything, once edits have stopped and its
// link is well: a second, two round trips, and what is owed at that rate. Owed is at most all that
// it may see, the end of what it has besides, and what the last large record has overdrawn.
func (g *guest) bound(m *model) int {
	const tick = time.Second / 60
	owed := m.largest
	for _, it := range m.items {
		if g.newest(it.key).since > 0 {
			owed += it.kind.sizeOf(it)
		}
	}
	for key := range g.told {
		if g.newest(key).since == 0 {
			owed += recordSize
		}
	}
	return int((time.Second+2*g.rtt()+tick-1)/tick) + (owed+g.rate()-1)/g.rate()
}
