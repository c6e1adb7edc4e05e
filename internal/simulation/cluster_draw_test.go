package simulation

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop"
)

// clusterStory is all that one seed draws for the servers of a cluster: their rooms and clients,
// and troubles. An event without its server or room has no effect, so that stories can be
// shortened.
type clusterStory struct {
	Seed    uint64
	Servers int
	Travels bool // clients and rooms move between servers
	// Duplicate is that of Config.Cluster: with a policy each guest has a place in one room.
	Duplicate netloop.DuplicatePolicy
	Length    time.Duration // of the part with troubles
	Events    []clusterEvent
}

// clusterEvent is one thing that happens at a time of the story.
type clusterEvent struct {
	At     time.Duration
	Do     string // a row of clusterActions
	Server int    // that is asked, or has the trouble
	Room   string
	For    time.Duration // of a trouble, or until an empty room closes
	Bot    int           // a guest
	N      uint64
}

// clusterActions are all kinds of events, with their weights.
var clusterActions = []struct {
	name   string
	weight int
	play   func(b *clusterPlay, s *clusterServer, e clusterEvent)
}{
	{"open", 8, func(b *clusterPlay, s *clusterServer, e clusterEvent) { b.open(s, e, false) }},
	{"place", 6, func(b *clusterPlay, s *clusterServer, e clusterEvent) { b.open(s, e, true) }},
	{"close", 3, (*clusterPlay).close},
	{"reserve", 6, (*clusterPlay).reserve},
	{"join", 10, (*clusterPlay).newcomer},
	{"freeze", 2, func(b *clusterPlay, s *clusterServer, e clusterEvent) { s.frozen = max(s.frozen, b.now+e.For) }},
	{"partition", 3, func(b *clusterPlay, s *clusterServer, e clusterEvent) { s.apart = max(s.apart, b.now+e.For) }},
	{"no store", 1, func(b *clusterPlay, _ *clusterServer, e clusterEvent) { b.noStore = max(b.noStore, b.now+e.For) }},
	{"kill", 1, (*clusterPlay).kill},

	// Those of drawTravels.
	{"guest", 0, (*clusterPlay).guest},
	{"travel", 0, (*clusterPlay).travel},
	{"travel by ticket", 0, (*clusterPlay).travelByTicket},
	{"hand over", 0, (*clusterPlay).handOver},
	{"letter", 0, (*clusterPlay).write},
	{"cut", 0, (*clusterPlay).cutGuest},
}

// drawCluster returns the story of a seed.
func drawCluster(seed uint64) *clusterStory {
	d := &drawer{Rand: rand.New(rand.NewPCG(seed, 34))}
	s := &clusterStory{Seed: seed, Servers: 2 + d.IntN(2), Length: d.between(10*time.Second, 30*time.Second)}
	for range 10 + d.IntN(40) {
		row := clusterActions[weighted(d.Rand, len(clusterActions), func(i int) int { return clusterActions[i].weight })]
		s.Events = append(s.Events, clusterEvent{
			At: d.between(0, s.Length), Do: row.name, Server: d.IntN(s.Servers), Room: oneOf(d, "oak", "elm", "ash", "fir"),
			For: oneOf(d, 500*time.Millisecond, 2*time.Second, 5*time.Second, 12*time.Second, 20*time.Second),
		})
	}
	s.drawTravels()
	s.Duplicate = oneOf(&drawer{Rand: rand.New(rand.NewPCG(seed, 761))}, 0, netloop.DuplicateTakeOver, netloop.DuplicateRefuse)
	slices.SortStableFunc(s.Events, func(a, b clusterEvent) int { return cmp.Compare(a.At, b.At) })
	return s
}

// String prints the story.
func (s *clusterStory) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %d servers, %v of troubles, policy %d for players in two rooms\n", s.Seed, s.Servers, s.Length, s.Duplicate)
	for _, e := range s.Events {
		fmt.Fprintf(&b, "%9.3fs %s server=%d room=%s for=%v bot=%d n=%d\n", e.At.Seconds(), e.Do, e.Server, e.Room, e.For, e.Bot, e.N)
	}
	return b.String()
}
