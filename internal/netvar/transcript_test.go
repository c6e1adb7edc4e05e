package netvar

import (
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/testing/golden"
)

// The transcript has a checksum of the bytes that some simulations send, and their costs: one
// column for each simulation and one row for each counter. Other tests prove that clients converge,
// however records are sent. This one reveals changes of the records: a change that should affect
// neither bytes nor costs must leave testdata/transcript.txt as it is, and for other changes the
// difference in that file is their cost.
func TestTranscript(t *testing.T) {
	models := []schema{newSchema(t).withAgents(t), newSchema(t).withLightAgents(t)}
	var all []*transcript
	for seed := range uint64(4) {
		m := newModel(models[seed%2], seed+1)
		all = append(all, m.transcribe(t, fmt.Sprint("model-", seed+1)))
	}
	for seed := range uint64(4) {
		all = append(all, newHerd(t, seed).transcribe(fmt.Sprint("herd-", seed)))
	}
	all = append(all,
		newFleet(t, 128, 6, twoBaselines, 0.05).transcribe("fleet", 128, 16, 4),
		newFleetOf(t, classOf[captain](t, "captain"), 70, 5, twoBaselines, 0.02).transcribe("captains", 70, 10),
		newFleet(t, 70, 8, []uint64{3, 11, 16, 23}, 0.25).transcribe("far", 70, 35),
		oddFleet(t, 20, oddClients, 6).transcribe("odd", 20),
		transcribePlane(t, "plane"))
	golden.Check(t, "testdata/transcript.txt", table(all))
}

// transcript is the checksum and the counters of one simulation.
type transcript struct {
	name    string
	sum     uint64
	figures []figure
}

type figure struct {
	row string
	n   uint64
}

func (l *transcript) add(row string, n uint64) {
	i := slices.IndexFunc(l.figures, func(f figure) bool { return f.row == row })
	if i < 0 {
		i = len(l.figures)
		l.figures = append(l.figures, figure{row: row})
	}
	l.figures[i].n += n
}

var polynomial = crc64.MakeTable(crc64.ECMA)

// sent adds packets and large records to the checksum.
func (l *transcript) sent(all ...[][]byte) {
	for _, list := range all {
		for _, b := range list {
			l.sum = crc64.Update(l.sum, polynomial, binary.LittleEndian.AppendUint32(nil, uint32(len(b))))
			l.sum = crc64.Update(l.sum, polynomial, b)
		}
	}
}

// end adds a world's counters, and the memory of its peers and the replicas.
func (l *transcript) end(name string, w *World, replicas ...*replica.Replica) *transcript {
	l.name = name
	l.counters("", *w.Stats())
	for i, c := range append(slices.Clone(w.table.Classes()), nil) {
		// bytes that move to another class change the sum
		l.add("bytes by class", uint64(1+i)*w.SpentOn(c))
	}
	for _, c := range w.table.Classes() {
		for i, n := range w.SpentOnFields(c) {
			l.add("bytes by field", uint64(1+i)*n)
		}
	}
	l.add("arena bytes", uint64(len(w.arena)))
	l.add("spare details", uint64(len(w.details.spare)))
	l.add("unshared runs", uint64(len(w.unshared)))
	for _, p := range w.peers {
		l.add("entries of peers", uint64(len(p.entries)))
		detailed := 0
		for i := range p.entries {
			if p.entries[i].detail != nil {
				detailed++
			}
		}
		l.add("with a detail", uint64(detailed))
		l.add("owed to peers", uint64(p.pending.Count()))
		l.add("undecided packets", p.flight.next-p.flight.oldest)
		l.add("holes of peers", uint64(len(p.ackedTicks.missingAt)))
	}
	clients := replica.Stats{}
	l.counters("client ", clients)
	for _, n := range []string{"client bytes", "client events"} {
		l.add(n, 0)
	}
	for _, r := range replicas {
		l.counters("client ", *r.Stats())
		l.add("client bytes", uint64(r.Size()))
		l.add("client events", uint64(len(r.Events())))
	}
	return l
}

// counters adds all fields of a struct of counters.
func (l *transcript) counters(of string, stats any) {
	v := reflect.ValueOf(stats)
	for _, field := range reflect.VisibleFields(v.Type()) {
		switch f := v.FieldByIndex(field.Index); {
		case f.CanInt():
			l.add(of+field.Name, uint64(f.Int()))
		case f.CanUint():
			l.add(of+field.Name, f.Uint())
		}
	}
}

// table formats all transcripts.
func table(all []*transcript) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', tabwriter.AlignRight)
	for _, l := range all {
		fmt.Fprintf(w, "%s\t", l.name)
	}
	fmt.Fprintln(w)
	for _, l := range all {
		fmt.Fprintf(w, "%016x\t", l.sum)
	}
	fmt.Fprintln(w, " sum")
	for i, f := range all[0].figures {
		for _, l := range all {
			fmt.Fprintf(w, "%d\t", l.figures[i].n)
		}
		fmt.Fprintln(w, " "+f.row)
	}
	_ = w.Flush() // a strings.Builder never fails
	return b.String()
}

// transcribe plays a model.
func (m *model) transcribe(t *testing.T, name string) *transcript {
	t.Helper()
	if err := m.run(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var replicas []*replica.Replica
	for _, c := range m.clients {
		replicas = append(replicas, c.r)
	}
	return m.sent.end(name, m.w, replicas...)
}

// transcribe plays a herd, for fewer ticks than others, because each tick is checked as a whole.
func (h *herd) transcribe(name string) *transcript {
	for range 60 {
		h.step(true)
	}
	var replicas []*replica.Replica
	for _, c := range h.clients {
		replicas = append(replicas, c.r)
	}
	return h.sent.end(name, h.w, replicas...)
}

// transcribe plays a fleet with each of these numbers of moving crates, for a while each.
func (f *fleet) transcribe(name string, moving ...int) *transcript {
	var l transcript
	for _, n := range moving {
		for range 20 {
			f.step(n)
			for i := range f.clients {
				l.sent(f.clients[i].packets)
			}
		}
		f.clients[0].peer.SetBudget(Budget{PerTick: 300})
	}
	return l.end(name, f.w)
}

// transcribePlane plays clients with eyes in moving rocks.
func transcribePlane(t *testing.T, name string) *transcript {
	t.Helper()
	var l transcript
	rng := rand.New(rand.NewPCG(1, 7))
	p := newPlane(t, 10, 40, 20, true)
	var rocks []*state.Object
	for range 80 {
		rocks = append(rocks, p.spawnRock(p.w, rock{X: rng.Int32N(300), Y: rng.Int32N(300)}, 1))
	}
	var replicas []*replica.Replica
	for i := range uint64(5) {
		p.space.SetViewpoints(&p.join(i+1).Viewer, interest.Viewpoint{Object: rocks[i]}, interest.Viewpoint{X: float64(60 * i)})
		replicas = append(replicas, replica.New(p.table))
	}
	for range 100 {
		for i, o := range rocks {
			switch rng.IntN(100) {
			case 0:
				p.w.Despawn(o)
				rocks[i] = p.spawnRock(p.w, rock{X: rng.Int32N(300)}, p.tick)
			case 1:
				p.w.SetOwner(o, rng.Uint64N(7))
			case 2:
				p.w.SetAudience(o, some{2, rng.Uint64N(2)})
			case 3:
				c := p.w.peers[rng.IntN(len(p.w.peers))]
				p.space.SetViewpoints(&c.Viewer, interest.Viewpoint{Object: o}, interest.Viewpoint{X: float64(rng.IntN(300)), Y: 50}, interest.Viewpoint{X: 300})
			default:
				p.moveTo(o, live[rock](o).X+rng.Int32N(9)-4, live[rock](o).Y+rng.Int32N(9)-4)
			}
		}
		p.step()
		for i, c := range p.w.peers {
			packets, _ := snap(c, p.tick, wide)
			l.sent(packets)
			if rng.IntN(10) > 0 {
				mustApply(t, replicas[i], c, packets...)
			}
		}
	}
	return l.end(name, p.w, replicas...)
}
