package netvar

import (
	"testing"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Other state that a peer keeps over a resume: see resume_test.go.

// A client without copies loads again, with all objects that exist when the first snapshot is cut.
// For other clients the missing objects still count, and new ones do not.
func TestAResumeWithoutCopiesLoadsAgain(t *testing.T) {
	const many = 40
	tight := Limit{Packets: 1, PacketSize: 100}
	for _, c := range []struct {
		what        string
		loaded      int // number of snapshots before the break
		kept        bool
		left, total int // in the first snapshot after it: at most, and in all
	}{
		{"loaded, kept", 30, true, 0, 0},
		{"loaded, without copies", 30, false, many, many + 1},
		{"loading, kept", 1, true, many - 10, many},
		{"loading, without copies", 1, false, many, many + 1},
		{"nothing sent, kept", 0, true, many, many + 1},
	} {
		q := newPair(t, 0)
		for i := range many {
			q.spawnRock(q.w, rock{X: 1 << 28, Y: int32(i)}, 1)
		}
		turn := func() replica.Applied {
			q.tick++
			q.w.Capture(q.tick)
			packets, first := snap(q.p, q.tick, tight)
			a, err := q.r.Apply(packets[0])
			if err != nil {
				t.Fatal(err)
			}
			q.p.Ack([]Range{{first, first}})
			return a
		}
		q.away(1, func() {})
		for range c.loaded {
			turn()
		}
		q.resume(c.kept)
		q.resume(true) // a second resume at once has the same result
		q.spawnRock(q.w, rock{}, q.tick)
		a := turn()
		if a.Total != c.total || a.Left > c.left || (a.Left == 0) != (c.left == 0) {
			t.Errorf("%s: %d of %d are missing, want at most %d of %d", c.what, a.Left, a.Total, c.left, c.total)
		}
		for range 30 {
			if a = turn(); a.Left == 0 && a.Total > 0 && len(ids(q.r)) < a.Total {
				t.Errorf("%s: nothing is missing, and the client has %d of %d objects", c.what, len(ids(q.r)), a.Total)
			}
		}
		if a.Total != 0 || len(ids(q.r)) != many+1 {
			t.Errorf("%s: in the end %+v, and the client has %d objects", c.what, a, len(ids(q.r)))
		}
	}
}

// For objects left out of a snapshot the client's lag counts from the acknowledged tick, even if
// later records were sent: messages that refer to them must wait.
func TestSnapshotsCountTheLagOfABreak(t *testing.T) {
	for _, kept := range []bool{true, false} {
		q := newPair(t, 100)
		old := q.spawnRock(q.w, rock{X: 1 << 28, Y: 1 << 28}, 1)
		q.deliver()
		acked := q.tick
		q.away(20, func() {})
		q.spawnRock(q.w, rock{X: 1 << 28, Y: 1 << 28}, 1)
		q.edit(old).X = 5
		q.next() // lost
		spawned := q.tick
		q.away(20, func() {})
		q.resume(kept)
		// The older object is sent first, and then the new one is missing.
		want := []uint64{acked, spawned - 1}
		if !kept {
			want = []uint64{acked - 1, spawned - 1}
		}
		for i := range 3 {
			q.tick++
			q.w.Capture(q.tick)
			size := []int{10, 24, 100}[i] // room for none, for one of the two, for all
			if i == 1 && !kept {
				size += 8 + 4 // progress, and a full record instead of a delta
			}
			packets, _ := snap(q.p, q.tick, Limit{Packets: 1, PacketSize: size})
			a, err := q.r.Apply(packets[0])
			if err != nil || !a.SnapshotComplete {
				t.Fatalf("%+v, %v", a, err)
			}
			q.p.Ack([]Range{{a.Packet, a.Packet}})
			if i < len(want) && a.Reached != want[i] {
				t.Errorf("kept %v: snapshot %d has reached %d, want %d", kept, i, a.Reached, want[i])
			}
			if i == len(want) && (a.Reached != q.tick || len(ids(q.r)) != 2) {
				t.Errorf("kept %v: in the end it has reached %d at %d, and the client has %d objects", kept, a.Reached, q.tick, len(ids(q.r)))
			}
		}
	}
}

// A client that loads again is sent the objects by weight, and not by age.
func TestLoadingAgainGoesByWeight(t *testing.T) {
	q := newPair(t, 0)
	q.spawnRock(q.w, rock{X: 1 << 28}, 1)
	q.away(500, func() {})
	heavy := q.spawnRock(q.w, rock{X: 1 << 28}, q.tick)
	q.w.SetWeight(heavy, 4)
	q.deliver()
	q.resume(false)
	q.tick++
	q.w.Capture(q.tick)
	packets, _ := snap(q.p, q.tick, Limit{Packets: 1, PacketSize: 32})
	mustApply(t, q.r, q.p, packets...)
	if ids := ids(q.r); len(ids) != 1 || ids[0] != heavy.ID() {
		t.Errorf("%v came first", ids)
	}
	q.deliver()
	q.settled()
}

// Objects that a client lacks since a connection broke are not shed, like others that it lacks.
func TestObjectsLostInABreakAreNotShed(t *testing.T) {
	q := newPair(t, 0)
	q.w.SetClassWeight(q.schema.rock, 0.5, 0)
	q.deliver()
	o := q.spawnRock(q.w, rock{X: 3}, q.tick)
	q.next()
	q.w.Shed(1000)
	q.resume(true)
	q.deliver()
	if q.rock(o.ID()).X != 3 || q.w.stats.Shed != 0 {
		t.Errorf("%d records were shed", q.w.stats.Shed)
	}
}

// A budget belongs to the client, and not to its connection: repeated resumes do not increase it.
func TestResumeKeepsTheBudget(t *testing.T) {
	for _, kept := range []bool{true, false} {
		q := newPair(t, 0)
		q.p.SetBudget(Budget{PerTick: 20, Burst: 40})
		for i := range 100 {
			q.spawnRock(q.w, rock{X: 1 << 28, Y: int32(i)}, 1)
		}
		sum := 0
		const ticks = 50
		for range ticks {
			packets, _ := q.next()
			for _, b := range packets {
				n, err := packet.RecordBytes(b)
				if err != nil {
					t.Fatal(err)
				}
				sum += n - 1 // the first bits are no record
			}
			q.resume(kept)
		}
		if most := 40 + 20*ticks + 20; sum > most || sum < most/2 {
			t.Errorf("kept %v: %d bytes in %d ticks, at most %d", kept, sum, ticks, most)
		}
	}
}

// Requested digests are still sent to the client after a resume with copies.
func TestAResumeKeepsRequestedDigests(t *testing.T) {
	for _, kept := range []bool{true, false} {
		q := newPair(t, 0)
		q.spawnRock(q.w, rock{}, 1)
		q.deliver()
		q.p.RequestDigest(3)
		q.next()
		q.resume(kept)
		packets, _ := q.next()
		if has := packets[0][packet.AtFlags]&packet.FlagDigest != 0; has != kept {
			t.Errorf("kept %v: a digest %v", kept, has)
		}
		mustApply(t, q.r, q.p, packets...)
		if d, _ := q.r.Digest(); kept && d != replica.DigestEqual {
			t.Errorf("digest %v", d)
		}
		q.settled()
	}
}

// Explain reports that packets before the resume are lost.
func TestExplainAfterAResume(t *testing.T) {
	for _, kept := range []bool{true, false} {
		q := newPair(t, 0)
		acked := q.spawnRock(q.w, rock{}, 1)
		q.deliver()
		lost := q.spawnRock(q.w, rock{}, q.tick)
		q.edit(acked).Y++
		q.next()
		q.resume(kept)
		for _, c := range []struct {
			o     *state.Object
			field int
			want  Why
		}{{acked, 1, WhyUnchanged}, {acked, 2, WhyNext}, {lost, 1, WhyNext}} {
			if !kept {
				c.want = WhyNext
			}
			if x := q.w.Explain(q.p, c.o, c.field); x.Why != c.want || len(x.Packets) != 0 || x.Copies != 0 {
				t.Errorf("kept %v: %+v, want reason %d", kept, x, c.want)
			}
		}
		q.deliver()
		if x := q.w.Explain(q.p, lost, 1); x.Why != WhyUnedited || x.Sent != q.tick || x.Copies != 0 {
			t.Errorf("kept %v: %+v", kept, x)
		}
	}
}

// After a resume the baselines of objects sent in runs are kept.
func TestAResumeKeepsBaselinesOfRuns(t *testing.T) {
	for _, kept := range []bool{true, false} {
		f := newFleet(t, 128, 1, []uint64{3}, 0)
		p, n := f.clients[0].peer, f.w.Stats()
		p.Resume(kept)
		f.clients[0].sent = [64]Range{}
		if fault := p.unsound(); fault != "" {
			t.Fatal(fault)
		}
		f.begin()
		f.step(128)
		if kept != (n.InRuns-f.counts.InRuns == 128) || kept != (n.Deltas-f.counts.Deltas == 128) || kept == (n.FullResumed == 128) {
			t.Errorf("kept %v: %d in runs, %d deltas, %d full", kept, n.InRuns-f.counts.InRuns, n.Deltas-f.counts.Deltas, n.FullResumed)
		}
		for range 30 {
			f.step(128)
		}
		f.begin()
		f.step(128)
		if got := n.InRuns - f.counts.InRuns; got != 128 {
			t.Errorf("kept %v: in the end %d go in runs", kept, got)
		}
	}
}

// A broken connection leaves no garbage: memory of packets and records is reused.
func TestResumeAllocatesNothing(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnHoard(q.w, hoard{Gold: 1, Loot: list4k()}, 1)
	for i := range 100 {
		q.spawnRock(q.w, rock{X: 1 << 28, Y: int32(i)}, 1)
	}
	kept := false
	var packets [][]byte
	turn := func() {
		for range 5 {
			q.tick++
			q.editHoard(o).Gold++
			q.w.Capture(q.tick)
			packets, _ = q.p.AppendSnapshot(packets[:0], q.tick, wide)
		}
		q.p.Resume(kept)
		kept = !kept
	}
	for range 2 * state.Horizon {
		turn()
	}
	if n := testing.AllocsPerRun(50, turn); n != 0 {
		t.Errorf("a connection allocates %v times, want 0", n)
	}
}
