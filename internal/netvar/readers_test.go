package netvar

import (
	"bytes"
	"reflect"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// agent has fields for its owner, for the members of a team, and for all clients.
type agent struct {
	X    int32
	Heat float32 `net:"quant=1/4,range=20:90,read=owner"`
	Ammo int32   `net:"read=owner,weight=16"`
	Plan string  `net:"max=8,read=team"`
	Gear struct {
		Key  int16 `net:"weight=4"`
		Hat  int16 `net:"read=all"`
		Bag  []item
		Spot [2]int8
	} `net:"read=team,weight=1/2"`
	Y    int32
	Take []loot `net:"max=400,read=team"` // may be larger than a packet
}

const ownerRule, teamRule = state.Rules(1 << 1), state.Rules(1 << 2)

// rules implements Readers for clients with their number as Handle: the owner has that number, and
// the team is a set.
type rules struct {
	team   clientSet
	asked  int
	judged int // clients
}

func (r *rules) Ask(*state.Object) { r.asked++ }

func (r *rules) Withheld(o *state.Object, p *interest.Viewer) (w state.Rules) {
	r.judged++
	if o.Owner() != uint64(p.Handle.(int)) {
		w |= ownerRule
	}
	if !r.team.Includes(p) {
		w |= teamRule
	}
	return w
}

// squad is a world of agents with two clients, 1 and 2; the test decides which packets arrive.
type squad struct {
	t     testing.TB
	class *state.Class
	table *state.Table
	w     *World
	p     [3]*Peer
	r     [3]*replica.Replica
	rules *rules
	tick  uint64
}

func newSquad(t testing.TB, tick uint64) *squad {
	c := classOf[agent](t, "agent")
	table := state.NewTable(c)
	q := &squad{t: t, class: c, table: table, w: NewWorld(table), rules: new(rules), tick: tick}
	q.w.SetReaders(c, q.rules)
	for i := 1; i < 3; i++ {
		q.join(i)
	}
	return q
}

func (q *squad) join(i int) {
	q.p[i], q.r[i] = q.w.NewPeer(q.tick+1), replica.New(q.table)
	q.p[i].Handle = i
	q.r[i].StartAt(q.tick)
}

func (q *squad) spawn(a agent, owner uint64) *state.Object {
	return q.w.Spawn(q.class, unsafe.Pointer(&a), owner, q.tick)
}

func (q *squad) edit(o *state.Object) *agent { q.w.Edit(o); return live[agent](o) }

// next is a tick. It returns a packet for each client.
func (q *squad) next() (packets [3][]byte) {
	q.t.Helper()
	q.tick++
	q.w.Capture(q.tick)
	for i := 1; i < 3; i++ {
		b, _ := snap(q.p[i], q.tick, wide)
		if len(b) != 1 {
			q.t.Fatalf("%d packets", len(b))
		}
		packets[i] = b[0]
	}
	return packets
}

// deliver is a tick in which all packets arrive and are acknowledged.
func (q *squad) deliver() {
	q.t.Helper()
	packets := q.next()
	for i := 1; i < 3; i++ {
		mustApply(q.t, q.r[i], q.p[i], packets[i])
	}
}

func (q *squad) want(i int, o *state.Object, want agent) {
	q.t.Helper()
	got, ok := q.r[i].Get(o.ID())
	if !ok {
		q.t.Fatalf("client %d has no object %x", i, uint64(o.ID()))
	}
	if !reflect.DeepEqual(*live[agent](got), want) {
		q.t.Errorf("client %d shows %+v, want %+v", i, *live[agent](got), want)
	}
}

// settled checks by digest that both clients have their readable state.
func (q *squad) settled() {
	q.t.Helper()
	for i := 1; i < 3; i++ {
		q.p[i].RequestDigest(1)
	}
	q.deliver()
	for i := 1; i < 3; i++ {
		if d, tick := q.r[i].Digest(); d != replica.DigestEqual || tick != q.tick {
			q.t.Errorf("client %d: digest %v of tick %d", i, d, tick)
		}
	}
}

func whole() (a agent) {
	a.X, a.Heat, a.Ammo, a.Plan, a.Y = 1, 50, 7, "flank", 2
	a.Gear.Key, a.Gear.Hat, a.Gear.Bag, a.Gear.Spot = 3, 4, []item{{"rope", 1}}, [2]int8{5, 6}
	return a
}

// withhold returns a as a client sees it that is withheld the rules.
func withhold(a agent, w state.Rules) agent {
	if w&ownerRule != 0 {
		a.Heat, a.Ammo = 20, 0 // in its range the nearest to 0
	}
	if w&teamRule != 0 {
		a.Plan, a.Gear.Key, a.Gear.Bag, a.Gear.Spot = "", 0, nil, [2]int8{}
	}
	return a
}

// tells reports whether a packet contains a text, at any bit.
func tells(packet []byte, text string) bool {
	for shift := range 8 {
		shifted := make([]byte, len(packet))
		for i, b := range packet {
			shifted[i] |= b >> shift
			if i > 0 {
				shifted[i-1] |= b << (8 - shift)
			}
		}
		if bytes.Contains(shifted, []byte(text)) {
			return true
		}
	}
	return false
}

func TestFieldsThatMayNotBeReadAreZero(t *testing.T) {
	q := newSquad(t, 0)
	q.rules.team = 1 << 2
	o := q.spawn(whole(), 1)
	packets := q.next()
	for i := 1; i < 3; i++ {
		mustApply(t, q.r[i], q.p[i], packets[i])
	}
	q.want(1, o, withhold(whole(), teamRule))
	q.want(2, o, withhold(whole(), ownerRule))
	if tells(packets[1], "flank") || !tells(packets[2], "flank") {
		t.Error("the plan is in the wrong packet")
	}
	for i := 1; i < 3; i++ { // all clients may read the owner
		if c, _ := q.r[i].Get(o.ID()); c.Owner() != 1 {
			t.Errorf("client %d: owner %d", i, c.Owner())
		}
	}
	a := q.edit(o)
	a.Heat, a.Plan, a.Gear.Bag[0].Count, a.X = 60, "hold", 9, 11
	now := *a
	q.deliver()
	q.want(1, o, withhold(now, teamRule))
	q.want(2, o, withhold(now, ownerRule))
	if q.w.stats.Deltas != 2 || q.w.stats.FullFirst != 2 {
		t.Errorf("%+v", q.w.stats)
	}
	q.settled()
}

// Without Readers fields with a rule are readable by no client.
func TestWithoutReadersNothingWithARuleIsRead(t *testing.T) {
	q := newSquad(t, 0)
	q.w.SetReaders(q.class, nil)
	o := q.spawn(whole(), 1)
	q.deliver()
	for i := 1; i < 3; i++ {
		q.want(i, o, withhold(whole(), ownerRule|teamRule))
	}
}

// Rule 2: an unreadable change makes no record pending and sends no data of the object, not even of
// its existence.
func TestChangeOutsideTheMaskSendsNothing(t *testing.T) {
	q := newSquad(t, 0)
	o := q.spawn(whole(), 1)
	still := q.spawn(whole(), 1)
	q.deliver()
	sent, version := q.w.stats.Records, uint64(0)
	if c, _ := q.r[2].Get(o.ID()); c != nil {
		version = c.Changed()
	}
	for i := range int32(5) {
		q.edit(o).Ammo = 100 + i
		packets := q.next()
		if q.p[2].pending.Count() != 0 {
			t.Fatal("something is owed")
		}
		mustApply(t, q.r[1], q.p[1], packets[1])
		mustApply(t, q.r[2], q.p[2], packets[2])
		for range q.r[2].Records {
			t.Fatalf("a packet with a record: %x", packets[2])
		}
	}
	if q.w.stats.Records != sent+5 { // the owner's
		t.Errorf("%d records", q.w.stats.Records-sent)
	}
	if c, _ := q.r[2].Get(o.ID()); c.Changed() != version {
		t.Errorf("the version went from %d to %d", version, c.Changed())
	}
	q.edit(o).Y++
	q.edit(still).Y++
	packets := q.next()
	q.edit(o).Ammo = 200 // before the acknowledgement that covers all pending changes
	q.tick++
	q.w.Capture(q.tick)
	mustApply(t, q.r[2], q.p[2], packets[2])
	if q.p[2].pending.Count() != 0 {
		t.Error("the change of what may not be read is owed")
	}
	q.deliver()
	a, b := q.r[2].Objects().Slots[0], q.r[2].Objects().Slots[1]
	if a.Changed() != b.Changed() || a.Hist.Len() != b.Hist.Len() {
		t.Error("the object that changed unseen differs from the one that did not")
	}
	q.want(2, o, withhold(*live[agent](o), ownerRule|teamRule))
	q.settled()
}

// Rule 4: the acknowledgement of a packet from before the owner changed would make the version
// without the owner's fields the baseline of a delta.
func TestAcknowledgementFromBeforeTheMaskChangedWithTheOwner(t *testing.T) {
	q := newSquad(t, 0)
	o := q.spawn(whole(), 1)
	before := q.next()
	a, err := q.r[2].Apply(before[2]) // arrives; its acknowledgement is late
	if err != nil {
		t.Fatal(err)
	}
	q.w.SetOwner(o, 2)
	q.next() // lost
	q.p[2].Ack([]Range{{a.Packet, a.Packet}})
	if e := q.p[2].detailed(0); e.base != 0 || !q.p[2].pending.Has(0) {
		t.Fatalf("baseline %d", e.base)
	}
	q.edit(o).X++
	after := q.next()
	mustApply(t, q.r[2], q.p[2], after[2])
	q.want(2, o, withhold(*live[agent](o), teamRule))
	mustApply(t, q.r[1], q.p[1], after[1])
	q.want(1, o, withhold(*live[agent](o), ownerRule|teamRule))
	if q.w.stats.FullMasked != 4 || q.w.stats.Masked != 2 { // two lost, two that arrived
		t.Errorf("%d full records for %d changes of masks", q.w.stats.FullMasked, q.w.stats.Masked)
	}
	if got := kinds(q.r[2].Events()); got != "S" { // before the first call of Events
		t.Errorf("events %s", got)
	}
	q.settled()
}

func TestOwnerChangeWithAValueInTheSameTick(t *testing.T) {
	q := newSquad(t, 40)
	o := q.spawn(whole(), 1)
	q.deliver()
	q.r[1].Events()
	q.r[2].Events()
	q.w.SetOwner(o, 2)
	q.edit(o).Ammo = 99
	q.deliver()
	now := *live[agent](o)
	q.want(1, o, withhold(now, ownerRule|teamRule))
	q.want(2, o, withhold(now, teamRule))
	for i, was := range map[int]agent{1: withhold(whole(), teamRule), 2: withhold(whole(), ownerRule|teamRule)} {
		events := q.r[i].Events()
		if kinds(events) != "C" || events[0].Object.Changed() != q.tick || events[0].Object.Owner() != 2 {
			t.Fatalf("client %d: events %s", i, kinds(events))
		}
		if old := *(*agent)(events[0].Old); !reflect.DeepEqual(old, was) {
			t.Errorf("client %d: old %+v, want %+v", i, old, was)
		}
	}
	q.settled()
}

func TestMaskChangedAndBackInOneTickIsNothing(t *testing.T) {
	q := newSquad(t, 0)
	o := q.spawn(whole(), 1)
	q.deliver()
	sent := q.w.stats.Records
	q.w.SetOwner(o, 2)
	q.w.SetOwner(o, 1)
	q.rules.team = 1 << 2
	q.w.Recheck(o)
	q.rules.team = 0
	q.deliver()
	if q.w.stats.Records != sent || q.w.stats.Masked != 0 {
		t.Errorf("%d records", q.w.stats.Records-sent)
	}
}

// The mask narrows and widens while packets of each are in flight; acknowledgements of the first
// two do not count.
func TestMaskNarrowsAndWidensWithinARoundTrip(t *testing.T) {
	q := newSquad(t, 0)
	q.rules.team = 1 << 2
	o := q.spawn(whole(), 1)
	q.deliver()
	q.edit(o).Plan = "wide"
	wide1 := q.next()
	q.rules.team = 0
	q.w.Recheck(o)
	narrow := q.next()
	q.rules.team = 1 << 2
	q.w.Recheck(o)
	q.edit(o).Plan = "again"
	wide2 := q.next()
	for _, b := range [][3][]byte{wide1, narrow} { // both arrive and are acknowledged
		mustApply(t, q.r[2], q.p[2], b[2])
	}
	q.want(2, o, withhold(*live[agent](o), ownerRule|teamRule)) // as in the packet applied last
	if base := q.p[2].detailed(0).base; base != 0 {
		t.Fatalf("baseline %d", base)
	}
	_ = wide2 // lost
	q.edit(o).Gear.Bag[0].Count = 77
	q.deliver()
	q.want(2, o, withhold(*live[agent](o), ownerRule))
	if st := q.w.stats; st.FullMasked != 3 || st.Masked != 2 {
		t.Errorf("%+v", st)
	}
	q.edit(o).Plan = "on"
	deltas := q.w.stats.Deltas
	q.deliver()
	q.want(2, o, withhold(*live[agent](o), ownerRule))
	if q.w.stats.Deltas != deltas+1 {
		t.Error("no delta after the full record was acknowledged")
	}
	q.settled()
}

// Rule 2 under a mask: values are never compared. In between, the unreadable fields change and
// revert too.
func TestABAUnderAMaskAcrossALostAcknowledgement(t *testing.T) {
	q := newSquad(t, 0)
	o := q.spawn(whole(), 1)
	q.deliver()
	q.edit(o).X = 50
	b := q.next()
	mustApply(t, q.r[2], nil, b[2]) // arrives, unacknowledged
	q.edit(o).Ammo = 1
	q.next()
	*q.edit(o) = whole() // both revert
	q.deliver()
	q.want(2, o, withhold(whole(), ownerRule|teamRule))
	q.settled()
}

func TestAJoinerGetsReadableFields(t *testing.T) {
	q := newSquad(t, 0)
	o := q.spawn(whole(), 2)
	q.deliver()
	q.w.ClosePeer(q.p[2])
	q.edit(o).Ammo = 5
	q.join(2)
	if !q.p[2].Shows(o) {
		t.Error("what the joiner will have is not shown")
	}
	asked := q.rules.asked
	q.rules.team = 1 << 2 // changes during OnJoin count
	packets := q.next()
	mustApply(t, q.r[2], q.p[2], packets[2])
	q.want(2, o, *live[agent](o))
	if q.rules.asked != asked {
		t.Error("the joiner made the rules be asked anew")
	}
	if st := q.w.stats; st.FullFirst != 3 || st.FullMasked != 0 {
		t.Errorf("%+v", st)
	}
	mustApply(t, q.r[1], q.p[1], packets[1])
	q.settled()
}

// A client's baseline may be older than all versions in the history, if unreadable fields change in
// each tick. The next record is a delta all the same.
func TestABaselineOutlivesChangesThatMayNotBeRead(t *testing.T) {
	q := newSquad(t, 0)
	o := q.spawn(whole(), 1)
	q.deliver()
	for range 2 * state.Horizon {
		q.edit(o).Ammo++
		q.deliver()
	}
	for range 2 {
		before := q.w.stats
		q.edit(o).X++
		q.deliver()
		q.want(2, o, withhold(*live[agent](o), ownerRule|teamRule))
		if now := q.w.stats; now.FullEvicted != before.FullEvicted || now.Deltas != before.Deltas+2 {
			t.Errorf("%d full records and %d deltas, want 0 and 2", now.FullEvicted-before.FullEvicted, now.Deltas-before.Deltas)
		}
	}
	q.settled()
}

// The version of a record after a change of mask is the tick of that change, in which no version
// was captured. It is a baseline all the same, also if all fields become readable.
func TestChangeOfMaskIsABaseline(t *testing.T) {
	q := newSquad(t, 0)
	o := q.spawn(whole(), 1)
	q.deliver()
	const both = clientSet(1<<1 | 1<<2)
	for _, c := range []struct {
		owner uint64
		team  clientSet
	}{{2, both}, {2, 0}, {2, both}, {1, 0}, {1, both}} {
		q.tick += 3
		q.rules.team = c.team
		q.w.SetOwner(o, c.owner)
		q.w.Recheck(o)
		q.deliver()
		q.deliver()
		if q.p[1].pending.Count()+q.p[2].pending.Count() > 0 {
			t.Errorf("%+v: the change of the mask is owed after its acknowledgement", c)
		}
		st := q.w.stats
		for range 3 {
			q.edit(o).X++
			q.deliver()
		}
		if q.w.stats.Deltas != st.Deltas+6 || q.w.stats.Records != st.Records+6 {
			t.Errorf("%d deltas of %d records, want 6", q.w.stats.Deltas-st.Deltas, q.w.stats.Records-st.Records)
		}
		q.settled()
	}
	q.w.SetOwner(o, 2)
	for _, team := range []clientSet{0, both, 0, both} { // and no other change
		q.rules.team = team
		q.w.Recheck(o)
		q.deliver()
		if c, _ := q.r[2].Get(o.ID()); c.Changed() != q.tick {
			t.Errorf("version %d at tick %d", c.Changed(), q.tick)
		}
	}
	q.want(2, o, *live[agent](o))
}

// An object that is hidden and shown again is judged again: its new lifetime does not inherit a
// mask.
func TestNewLifetimeHasANewMask(t *testing.T) {
	q := newSquad(t, 0)
	o := q.spawn(whole(), 1)
	q.deliver()
	q.w.SetAudience(o, only{q.p[1]})
	q.deliver()
	q.w.SetOwner(o, 2)
	q.rules.team = 1 << 2
	q.deliver()
	q.w.SetAudience(o, nil)
	q.deliver()
	q.want(2, o, *live[agent](o))
	q.want(1, o, withhold(whole(), ownerRule|teamRule))
	if st := q.w.stats; st.FullVisible != 1 || st.FullMasked != 1 { // the former owner's
		t.Errorf("%+v", st)
	}
	q.settled()
}

// Rule 12: clients of one mask share encodings.
func TestClientsOfOneMaskShareAnEncoding(t *testing.T) {
	c := classOf[agent](t, "agent")
	w := NewWorld(state.NewTable(c))
	w.SetReaders(c, &rules{})
	var peers []*Peer
	for i := range 8 {
		p := w.NewPeer(1)
		p.Handle = i + 1
		peers = append(peers, p)
	}
	a := whole()
	w.Spawn(c, unsafe.Pointer(&a), 3, 1)
	w.Capture(1)
	for _, p := range peers {
		snap(p, 1, wide)
	}
	if w.stats.Encoded != 2 {
		t.Errorf("encoded %d times, want once for the owner and once for all others", w.stats.Encoded)
	}
}

func TestMaskedSnapshotsAllocateNothing(t *testing.T) {
	q := newSquad(t, 0)
	var list []*state.Object
	for range 20 {
		list = append(list, q.spawn(whole(), 1))
	}
	var packets [][]byte
	step := func() {
		for _, o := range list {
			q.edit(o).X++
			live[agent](o).Ammo++
		}
		q.tick++
		q.w.Capture(q.tick)
		for i := 1; i < 3; i++ {
			var first uint64
			packets, first = q.p[i].AppendSnapshot(packets[:0], q.tick, wide)
			q.p[i].Ack([]Range{{first, first + uint64(len(packets)) - 1}})
		}
	}
	for range 3 * state.Horizon {
		step()
	}
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("a tick allocates %v times", n)
	}
}

// everyBit withholds rules that do not exist.
type everyBit struct{ rules state.Rules }

func (everyBit) Ask(*state.Object) {}

func (s everyBit) Withheld(*state.Object, *interest.Viewer) state.Rules { return s.rules }

// Only existing rules can be withheld: rule 0 is readable by all clients.
func TestOnlyRulesThatThereAreAreWithheld(t *testing.T) {
	class := classOf[captain](t, "captain") // with one rule
	for rules, want := range map[state.Rules]state.Rules{^state.Rules(0): 2, ^state.Rules(2): 0, 1: 0, 4: 0, 6: 2} {
		w := NewWorld(state.NewTable(class))
		w.SetReaders(class, everyBit{rules})
		o := w.Spawn(class, unsafe.Pointer(&captain{}), 0, 1)
		p := w.NewPeer(1)
		w.Capture(1)
		if got := p.Withheld(o.ID().Slot()); got != want {
			t.Errorf("of rules %b %b are withheld, want %b", rules, got, want)
		}
	}
}
