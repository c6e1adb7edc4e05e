package play

import (
	"time"

	"github.com/netloop/netloop/client"
)

// Graph has the figures of the connection of the last seconds.
type Graph struct {
	Columns []Column // the oldest first
	Now     client.Stats
	next    time.Duration
}

// Column has the figures of 50 ms.
type Column struct {
	RTT, Delay, Age     time.Duration // the round trip, the delay of the view, the age of the state
	In, Out             uint64        // bytes
	Lost, Missed, Wrong bool          // a packet, an input of the player, a prediction
}

const (
	columnTime = 50 * time.Millisecond
	maxColumns = 164
)

// sample ends a column when its time is over.
func (g *Graph) sample(now time.Duration, s client.Stats) {
	if now < g.next {
		return
	}
	was := g.Now
	if g.next = max(g.next+columnTime, now); was.BytesIn == 0 {
		was = s
	}
	g.Now = s
	g.Columns = append(g.Columns, Column{
		RTT: s.RTT, Delay: s.ViewDelay, Age: s.Age, In: s.BytesIn - was.BytesIn, Out: s.BytesOut - was.BytesOut,
		Lost: s.Lost > was.Lost, Missed: s.InputsMissed > was.InputsMissed, Wrong: s.Prediction.Mispredicted > was.Prediction.Mispredicted,
	})
	g.Columns = g.Columns[max(0, len(g.Columns)-maxColumns):]
}

// Second returns the bytes of the last second.
func (g *Graph) Second() (in, out uint64) {
	for _, c := range g.Columns[max(0, len(g.Columns)-int(time.Second/columnTime)):] {
		in, out = in+c.In, out+c.Out
	}
	return in, out
}
