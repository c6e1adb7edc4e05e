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

// simClient is a client, with its expected state and its watcher calls.
type simClient struct {
	c      *client.Client
	number int
	link   netlooptest.Link // without its events
	budget int              // bytes per tick

	// Set by the model.
	id             netloop.ClientID // 0 until it has joined
	in             bool             // in the room
	viewpoints     []viewpoint
	nextViewpoints []viewpoint // from the next capture on, unless nil
	views          map[string][]view

	// Set by the watchers.
	told             map[string]watcherCall // by object, until its despawn
	lives            map[string]uint64      // by object: the earliest tick of the next lifetime
	count            map[string]uint32      // by object: newest N
	err              error                  // the first
	log              hash.Hash              // of all watcher calls
	packets, records uint64                 // counts at the last watcher call
	streamed         bool                   // whether that call's state came with a large record
	tally            *coverage

	gone   bool // it left or vanished
	broken uint64
	until  uint64
	mend   func() // ends the link's event
}

// watcherCall is the content of a watcher call for an object.
type watcherCall struct {
	kind    kind
	key     string
	text    string
	n       uint32
	changed uint64
	lives   []uint64 // the possible lifetimes of the value; a large record may have several
}

func (g *simClient) fail(format string, a ...any) {
	g.err = cmp.Or(g.err, fmt.Errorf("client %d, having applied tick %d: "+format, append([]any{g.id, g.c.Stats().Applied}, a...)...))
}

// spawned checks that the object is new, and its lifetime too.
func (g *simClient) spawned(now watcherCall) {
	g.tally.spawns++
	if _, twice := g.told[now.key]; twice {
		g.fail("%s %s spawns twice", now.kind.name(), now.key)
	}
	g.check(&now, g.lives[now.key])
	g.lives[now.key] = now.lives[0] + 1
	g.told[now.key] = now
}

// changed checks that the object is known, in the same lifetime.
func (g *simClient) changed(now watcherCall, old string) {
	g.tally.changes++
	before, ok := g.told[now.key]
	if !ok || !strings.HasSuffix(before.text, old) {
		g.fail("%s %s changes from %.200s, was %.200s", now.kind.name(), now.key, old, before.text)
	}
	if now.changed < before.changed {
		g.fail("%s %s changes from version %d to %d", now.kind.name(), now.key, before.changed, now.changed)
	}
	g.check(&now, 0)
	now.lives = slices.DeleteFunc(now.lives, func(since uint64) bool { return !slices.Contains(before.lives, since) })
	if len(now.lives) == 0 {
		g.fail("%s %s changes in another lifetime than its last one, %d", now.kind.name(), now.key, before.lives)
	}
	g.told[now.key] = now
}

// despawned checks that the object is known, and that the model hides it or has a new lifetime.
func (g *simClient) despawned(now watcherCall, last string) {
	g.tally.despawns++
	before, ok := g.told[now.key]
	if !ok || !strings.HasSuffix(before.text, last) {
		g.fail("%s %s despawns with %.200s, was %.200s", now.kind.name(), now.key, last, before.text)
	}
	applied := g.c.Stats().Applied
	if v := g.between(now.key, applied, applied); len(v) > 0 && slices.Equal(before.lives, []uint64{v[0].since}) {
		g.fail("%s %s despawns, and is visible since %d", now.kind.name(), now.key, v[0].since)
	}
	delete(g.told, now.key)
	fmt.Fprintln(g.log, "-", now.key)
}

// check compares a value with the expected one of its packet's tick, and finds its lifetime,
// which begins at since at the earliest. A value from the stream may be of an earlier tick.
func (g *simClient) check(now *watcherCall, since uint64) {
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

// differs compares all objects of the client with the model, in both directions.
func (g *simClient) differs(w *netlooptest.World) (err error) {
	seen := map[string]string{}
	w.Look(g.c, func(t *netloop.Tick) {
		for _, k := range kinds {
			k.has(t, func(key, text string) {
				if told, ok := g.told[key]; !ok || told.text != text {
					err = fmt.Errorf("client %d has %s %s as %.200s, its watcher got %.200s", g.id, k.name(), key, text, told.text)
				}
				seen[key] = text
			})
		}
	})
	if len(seen) != len(g.told) {
		err = fmt.Errorf("client %d has %d objects, its watchers got %d", g.id, len(seen), len(g.told))
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

// rtt returns an upper bound of the round trip of the client's link, with its router's queue.
func (g *simClient) rtt() time.Duration {
	rtt := 2 * (g.link.Delay + g.link.Jitter)
	if g.link.Reorder > 0 {
		rtt += 2 * 40 * time.Millisecond
	}
	if g.link.Bandwidth > 0 {
		rtt += 200 * time.Millisecond
	}
	return rtt
}

// rate returns the bytes of records that the client may be sent in a tick: its budget, or its
// link's bandwidth minus headers and acknowledgements.
func (g *simClient) rate() int {
	if g.link.Bandwidth == 0 {
		return g.budget
	}
	const packet = 200
	return min(g.budget, g.link.Bandwidth/8/60-packet)
}

// bound returns the ticks that the client may take to converge after the last edit with a healed
// link: a second, two round trips, and the time for the unsent bytes at its rate. These are at
// most all visible objects, the despawns of hidden ones, and the overdraft of the last large
// record.
func (g *simClient) bound(m *model) int {
	const tick = time.Second / 60
	unsent := m.largest
	for _, it := range m.items {
		if g.newest(it.key).since > 0 {
			unsent += it.kind.sizeOf(it)
		}
	}
	for key := range g.told {
		if g.newest(key).since == 0 {
			unsent += recordSize
		}
	}
	return int((time.Second+2*g.rtt()+tick-1)/tick) + (unsent+g.rate()-1)/g.rate()
}
