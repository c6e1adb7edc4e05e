package match

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/netloop/netloop"
)

// QueueConfig describes the matches of a [Queue]. P are the properties of a party, such as its
// rating and its region.
type QueueConfig[P any] struct {
	// Teams and TeamSize are the shape of a match: 1 to 16 teams of 1 to 64 players each.
	Teams, TeamSize int
	// Distance returns how badly two parties fit, from 0 for a perfect fit. It must be symmetric
	// and depend on its arguments alone. Nil means that all parties fit.
	Distance func(a, b P) float64
	// Tolerance returns the largest distance that a party accepts after it has waited for a time.
	// It must not fall with the time. Any two parties of a match accept each other. Nil accepts any
	// distance.
	Tolerance func(waited time.Duration) float64
	// Weight is the strength of a party, all its players together: the sums of the teams are kept
	// close. Nil balances nothing but the sizes.
	Weight func(P) float64
	// Found takes a match: it sends the players to a room, usually by [Rooms.Join] with a seat for
	// each. It is called in Update.
	Found func(t *netloop.Tick, m Match[P])
	// MaxParties is the largest number of waiting parties; zero means 10 000.
	MaxParties int
}

// Party is a group of players who are matched together: one or more clients of the room.
type Party[P any] struct {
	Players    []netloop.ClientID
	Properties P
}

// Match is a found match.
type Match[P any] struct {
	Teams [][]Party[P]
}

// Players returns the players of the match, team by team.
func (m Match[P]) Players() (all []netloop.ClientID) {
	for _, team := range m.Teams {
		for _, p := range team {
			all = append(all, p.Players...)
		}
	}
	return all
}

// Queue matches waiting parties of a room. Each tick makes a bounded number of comparisons, so that
// a long queue is searched over several ticks. The party that has waited longest is served first,
// and no party is split. A party whose player leaves the room leaves the queue. A Queue belongs to
// the room's goroutine.
type Queue[P any] struct {
	cfg     QueueConfig[P]
	waiting []*waiting[P] // the oldest first
	of      map[netloop.ClientID]*waiting[P]
	near    []*waiting[P] // of a search: the tried parties that fit
	seed    int           // the next party for which mates are searched
	end     int           // of the round: parties that come later are searched in the next one
	round   int           // the number of searches of the whole queue
	took    time.Duration
}

// waiting is a party in the queue.
type waiting[P any] struct {
	Party[P]
	since time.Duration // game time
	gone  bool
}

// The errors of [Queue.Add].
var (
	ErrQueueFull  error = &netloop.Refusal{Code: netloop.CodeBusy, Text: "too many players wait for a match"}
	ErrWaiting    error = &netloop.Refusal{Code: netloop.CodeRefused, Text: "a player of the party waits already"}
	errPartyLarge       = errors.New("match: Queue.Add: a party needs 1 player to TeamSize players, each once")
)

const (
	defaultMaxParties = 10_000
	// comparisonsPerTick bounds the work of a tick to about a millisecond.
	comparisonsPerTick = 20_000
	// matesTried is the number of parties that one search for mates tries, unless a match needs
	// more than half as many players.
	matesTried = 200
	// wholeSearches is the number of the oldest parties that try the whole queue in each round.
	wholeSearches = 4
)

// NewQueue returns an empty queue, and registers the system "match.queue" at Update. Call it in
// [netloop.Game] Open.
func NewQueue[P any](r *netloop.Room, c QueueConfig[P]) *Queue[P] {
	if c.Teams < 1 || c.Teams > 16 || c.TeamSize < 1 || c.TeamSize > 64 || c.Found == nil {
		panic("match: NewQueue: a QueueConfig needs 1 to 16 Teams, a TeamSize of 1 to 64, and Found")
	}
	if c.MaxParties == 0 {
		c.MaxParties = defaultMaxParties
	}
	q := &Queue[P]{cfg: c, of: map[netloop.ClientID]*waiting[P]{}}
	r.OnLeave(func(_ *netloop.Tick, c *netloop.Client, _ *netloop.Closed) { q.Remove(c.ID()) })
	r.On(netloop.Update, "match.queue", q.search, netloop.RunIf(func(*netloop.Tick) bool { return len(q.of) > 0 }))
	return q
}

// Add puts a party at the end of the queue. It fails with [ErrWaiting] if one of its players waits
// already, and with [ErrQueueFull].
func (q *Queue[P]) Add(t *netloop.Tick, p Party[P]) error {
	if len(p.Players) == 0 || len(p.Players) > q.cfg.TeamSize {
		return errPartyLarge
	}
	if len(q.of) == 0 { // No search runs, which would remove the parties that have left.
		clear(q.waiting)
		q.waiting, q.seed, q.end = q.waiting[:0], 0, 0
	}
	if len(q.waiting) >= q.cfg.MaxParties {
		return ErrQueueFull
	}
	for i, id := range p.Players {
		if q.of[id] != nil {
			return ErrWaiting
		}
		if slices.Contains(p.Players[:i], id) {
			return errPartyLarge
		}
	}
	w := &waiting[P]{Party: Party[P]{slices.Clone(p.Players), p.Properties}, since: t.GameTime()}
	q.waiting = append(q.waiting, w)
	for _, id := range p.Players {
		q.of[id] = w
	}
	return nil
}

// Remove takes the party of a player out of the queue, and reports whether there was one.
func (q *Queue[P]) Remove(player netloop.ClientID) bool {
	w := q.of[player]
	if w == nil {
		return false
	}
	q.forget(w)
	return true
}

// forget removes a party from the queue; its place in the order is removed by the next search.
func (q *Queue[P]) forget(w *waiting[P]) {
	w.gone = true
	for _, id := range w.Players {
		delete(q.of, id)
	}
}

// Len returns the number of waiting players.
func (q *Queue[P]) Len() int { return len(q.of) }

// Expected returns the wait that a new party can expect: about the wait of the parties that were
// matched last, zero before the first match. Players see it as a [netloop.Deadline] in an object of
// their own: t.In(q.Expected()).
func (q *Queue[P]) Expected() time.Duration { return q.took }

// search searches mates for as many parties as a tick permits, from the oldest on.
func (q *Queue[P]) search(t *netloop.Tick) {
	if q.seed >= q.end {
		q.waiting = slices.DeleteFunc(q.waiting, func(w *waiting[P]) bool { return w.gone })
		q.seed, q.end = 0, len(q.waiting)
		q.round++
	}
	for left := comparisonsPerTick; left > 0 && q.seed < q.end; q.seed++ {
		w := q.waiting[q.seed]
		if w.gone {
			continue
		}
		teams, work := q.mates(t.GameTime(), w)
		if left -= work; teams == nil {
			continue
		}
		m := Match[P]{Teams: make([][]Party[P], len(teams))}
		for i, team := range teams {
			for _, w := range team {
				q.forget(w)
				q.note(t.GameTime() - w.since)
				m.Teams[i] = append(m.Teams[i], w.Party)
			}
		}
		q.cfg.Found(t, m)
	}
}

// note takes the wait of a matched party into the expected wait, an average over about ten parties.
func (q *Queue[P]) note(waited time.Duration) {
	if q.took == 0 {
		q.took = waited
	}
	q.took += (waited - q.took) / 10
}

// mates returns the teams of a match with the next party, or nil, and the number of comparisons. It
// tries the oldest parties first. Of a long queue it tries a part: in the first round the parties
// that came after the next one, then the part after that. The oldest parties try the whole queue,
// and the next ones large parts of it, so that none of them waits for a round with its mates. Old
// parties accept distant mates, which newer ones do not accept, so if no match is complete, the
// nearest parties are tried first.
func (q *Queue[P]) mates(now time.Duration, w *waiting[P]) (found [][]*waiting[P], work int) {
	l := q.lineup(w)
	n := len(q.waiting)
	tries := min(n, max(matesTried, 2*l.need, wholeSearches*n/(q.seed+1)))
	first := 0
	if tries < n {
		first = q.seed + 1 + q.round*tries
	}
	q.near = q.near[:0]
	for i := 0; i < tries && l.need > 0; i++ {
		mate := q.waiting[(first+i)%n]
		work++
		if mate == w || mate.gone || !q.fits(now, mate, w) {
			continue
		}
		q.near = append(q.near, mate)
		work += q.add(now, &l, mate)
	}
	if l.need > 0 && q.cfg.Distance != nil && players(q.near) >= q.lineup(w).need {
		slices.SortStableFunc(q.near, func(a, b *waiting[P]) int {
			return cmp.Compare(q.cfg.Distance(w.Properties, a.Properties), q.cfg.Distance(w.Properties, b.Properties))
		})
		l = q.lineup(w)
		for _, mate := range q.near {
			work += 1 + q.add(now, &l, mate)
		}
	}
	if l.need > 0 {
		return nil, work + 1
	}
	return q.teams(l.parties), work + 1
}

// lineup are the parties that were chosen for a match.
type lineup[P any] struct {
	parties []*waiting[P]
	need    int // players
}

// lineup returns a match of one party.
func (q *Queue[P]) lineup(w *waiting[P]) lineup[P] {
	return lineup[P]{[]*waiting[P]{w}, q.cfg.Teams*q.cfg.TeamSize - len(w.Players)}
}

// add chooses a party that fits the first one, if it fits the others too and the teams have room.
// It returns the number of comparisons.
func (q *Queue[P]) add(now time.Duration, l *lineup[P], mate *waiting[P]) (work int) {
	if len(mate.Players) > l.need {
		return 0
	}
	for _, other := range l.parties[1:] {
		if work++; !q.fits(now, mate, other) {
			return work
		}
	}
	l.parties = append(l.parties, mate)
	// One player has a place in any team that is not full.
	if len(mate.Players) > 1 && q.teams(l.parties) == nil {
		l.parties = l.parties[:len(l.parties)-1]
		return work
	}
	l.need -= len(mate.Players)
	return work
}

// players returns the number of players of parties.
func players[P any](all []*waiting[P]) (n int) {
	for _, w := range all {
		n += len(w.Players)
	}
	return n
}

// fits reports whether two parties accept each other.
func (q *Queue[P]) fits(now time.Duration, a, b *waiting[P]) bool {
	if q.cfg.Distance == nil || q.cfg.Tolerance == nil {
		return true
	}
	d := q.cfg.Distance(a.Properties, b.Properties)
	return d <= q.cfg.Tolerance(now-a.since) && d <= q.cfg.Tolerance(now-b.since)
}

// teams divides parties into teams, the largest and strongest first, each into the weakest team
// with room. It returns nil if a party finds no room.
func (q *Queue[P]) teams(parties []*waiting[P]) [][]*waiting[P] {
	weight := q.cfg.Weight
	if weight == nil {
		weight = func(P) float64 { return 0 }
	}
	order := slices.Clone(parties)
	slices.SortStableFunc(order, func(a, b *waiting[P]) int {
		return cmp.Or(cmp.Compare(len(b.Players), len(a.Players)), cmp.Compare(weight(b.Properties), weight(a.Properties)))
	})
	teams := make([][]*waiting[P], q.cfg.Teams)
	sizes, sums := make([]int, q.cfg.Teams), make([]float64, q.cfg.Teams)
	for _, p := range order {
		best := -1
		for i := range teams {
			if sizes[i]+len(p.Players) <= q.cfg.TeamSize && (best < 0 || cmp.Or(cmp.Compare(sums[i], sums[best]), cmp.Compare(sizes[i], sizes[best])) < 0) {
				best = i
			}
		}
		if best < 0 {
			return nil
		}
		teams[best] = append(teams[best], p)
		sizes[best] += len(p.Players)
		sums[best] += weight(p.Properties)
	}
	return teams
}
