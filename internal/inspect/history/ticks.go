package history

import (
	"fmt"
	"net/http"

	"github.com/netloop/netloop/internal/recording"
)

const (
	// defaultRows and maxTickRows bound the rows of Ticks: a timeline has no more pixels.
	defaultRows, maxTickRows = 1000, 4096
	// maxExact bounds the ticks whose lanes are read from the records of the file. For more ticks,
	// the lanes are summed from the buckets.
	maxExact = 2048
	// maxLanesShown bounds the lanes of an answer.
	maxLanesShown = 64
)

// Each list of a TicksAnswer has one element per row. A row covers Every ticks, the last row maybe
// fewer. Its counts are sums over these ticks, its Objects is the number after the last of them,
// and its Late is their largest lateness.
type TicksAnswer struct {
	Every   int      `json:"every"`   // ticks of a row
	Ticks   []uint64 `json:"ticks"`   // the first of each row
	Objects []uint32 `json:"objects"` // number after the last tick of the row
	Added   []uint32 `json:"added"`   // new objects
	Removed []uint32 `json:"removed"` // ended objects
	Changed []uint32 `json:"changed"` // changed objects

	Joins    []uint32 `json:"joins"`    // clients that joined
	Leaves   []uint32 `json:"leaves"`   // clients that left
	Drops    []uint32 `json:"drops"`    // lost connections
	Resumes  []uint32 `json:"resumes"`  // resumed connections
	Messages []uint32 `json:"messages"` // messages of clients
	Inputs   []uint32 `json:"inputs"`   // packets of inputs
	Posts    []uint32 `json:"posts"`    // events from outside of the room
	Results  []uint32 `json:"results"`  // ended work that was given to Go
	Dropped  []uint32 `json:"dropped"`  // ticks dropped before
	LateNS   []int64  `json:"late_ns"`  // largest lateness of the row

	// Methods counts messages by their name.
	Methods map[string][]uint32 `json:"methods"`
	Lanes   []LaneAnswer        `json:"lanes"` // clients, by id
	// MoreLanes is the number of clients beyond the largest number of lanes.
	MoreLanes int `json:"more_lanes"`
}

// LaneAnswer is a client of the ticks. From and To are the ticks of its join and leave; To is 0 if
// it has not left.
type LaneAnswer struct {
	Client   uint64   `json:"client"`   // id of the client
	Subject  string   `json:"subject"`  // the player; empty without
	From     uint64   `json:"from"`     // tick of its join
	To       uint64   `json:"to"`       // tick of its leave; 0: it has not left
	Messages []uint32 `json:"messages"` // by row
	Inputs   []uint32 `json:"inputs"`   // packets of inputs, by row
}

// Ticks returns the counts of the ticks from one to another, in at most so many rows.
func (r *Recording) Ticks(from, to uint64, rows int) (TicksAnswer, error) {
	n := r.store.ticks.len()
	if n == 0 {
		return TicksAnswer{}, refusef(http.StatusNotFound, "no tick is known yet: %s", r.Outcome().Text)
	}
	first, end := r.store.from(from), min(r.store.from(to+1), n)
	if to == 0 || to+1 == 0 {
		end = n
	}
	if first >= end {
		return TicksAnswer{}, refusef(http.StatusNotFound, "there are no ticks from %d to %d: %d ticks are known, the last is %d", from, to, n, r.store.ticks.at(n-1).tick)
	}
	every := max(1, (end-first+rows-1)/rows)
	if end-first > maxExact { // by buckets
		first -= first % bucket
		every = (end - first + rows - 1) / rows
		every += (bucket - every%bucket) % bucket
	}
	t := &timeline{first: first, end: end, every: every, TicksAnswer: TicksAnswer{Every: every, Methods: map[string][]uint32{}, Lanes: []LaneAnswer{}}}
	t.sum(r.store)
	t.findLanes(r.lanes, r.store.ticks.at(end-1).tick)
	return t.TicksAnswer, t.count(r)
}

// timeline collects an answer of Ticks, for the positions from first to end.
type timeline struct {
	TicksAnswer
	first, end, every int
	shown             map[uint64]int // index of a client's lane
}

func (t *timeline) rows() int { return (t.end - t.first + t.every - 1) / t.every }

// sum adds up the counts of the index.
func (t *timeline) sum(s *store) {
	columns := []*[]uint32{&t.Objects, &t.Added, &t.Removed, &t.Changed, &t.Joins, &t.Leaves, &t.Drops, &t.Resumes, &t.Messages, &t.Inputs, &t.Posts, &t.Results, &t.Dropped}
	for _, c := range columns {
		*c = make([]uint32, t.rows())
	}
	t.Ticks, t.LateNS = make([]uint64, t.rows()), make([]int64, t.rows())
	for i := t.first; i < t.end; i++ {
		info, row := s.ticks.at(i), (i-t.first)/t.every
		if (i-t.first)%t.every == 0 {
			t.Ticks[row], t.LateNS[row] = info.tick, info.late
		}
		t.Objects[row], t.LateNS[row] = info.objects, max(t.LateNS[row], info.late)
		for c, n := range []uint32{
			info.added, info.removed, info.changed, uint32(info.joins), uint32(info.leaves), uint32(info.drops), uint32(info.resumes),
			info.messages, info.inputs, uint32(info.posts), uint32(info.results), uint32(info.dropped),
		} {
			(*columns[1+c])[row] += n
		}
	}
}

// findLanes adds a lane for each client that was in the room.
func (t *timeline) findLanes(l *lanes, last uint64) {
	t.shown = map[uint64]int{}
	for i := range l.clients.len() {
		c := *l.clients.at(i)
		to := c.to.Load()
		switch {
		case c.from > last || to != 0 && to < t.Ticks[0]:
		case len(t.Lanes) == maxLanesShown:
			t.MoreLanes++
		default:
			t.shown[c.id] = len(t.Lanes)
			t.Lanes = append(t.Lanes, LaneAnswer{c.id, c.subject, c.from, to, make([]uint32, t.rows()), make([]uint32, t.rows())})
		}
	}
}

// count counts messages and inputs by client and method.
func (t *timeline) count(r *Recording) error {
	if t.end-t.first > maxExact {
		for b := t.first / bucket; b < min((t.end+bucket-1)/bucket, r.lanes.buckets.len()); b++ {
			t.add(r, (b*bucket-t.first)/t.every, *r.lanes.buckets.at(b))
		}
		return nil
	}
	in := recording.NewReaderAt(r.cfg.File, r.store.ticks.at(t.first).record)
	var counts []count
	for i := t.first; i < t.end; i++ {
		rec, err := nextTick(in)
		if err != nil {
			return err
		}
		counts = appendCounts(counts[:0], rec)
		t.add(r, (i-t.first)/t.every, counts)
	}
	return nil
}

// nextTick reads a record that the replay has read before.
func nextTick(in *recording.Reader) (*recording.Tick, error) {
	b, err := in.Next()
	rec := new(recording.Tick)
	if err == nil {
		err = recording.ReadTick(b, rec)
	}
	if err != nil {
		return nil, fmt.Errorf("the recording has changed: %w", err)
	}
	return rec, nil
}

func (t *timeline) add(r *Recording, row int, counts []count) {
	for _, c := range counts {
		if c.method != 0 {
			name := r.methodName(c.method)
			if t.Methods[name] == nil {
				t.Methods[name] = make([]uint32, t.rows())
			}
			t.Methods[name][row] += c.n
		}
		i, ok := t.shown[c.client]
		switch {
		case !ok:
		case c.method == 0:
			t.Lanes[i].Inputs[row] += c.n
		default:
			t.Lanes[i].Messages[row] += c.n
		}
	}
}

// methodName returns the name of a method, or its number if the schema does not have it.
func (r *Recording) methodName(id uint32) string {
	if m, ok := r.schema.Method(id); ok {
		return m.Queue.Name
	}
	return fmt.Sprintf("(method %d)", id)
}
