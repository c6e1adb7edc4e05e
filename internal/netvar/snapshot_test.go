package netvar

import "testing"

// A snapshot with a digest has what the world sheds otherwise, or no client could be compared while a
// server is overloaded.
func TestADigestIsComparedWhileTheWorldSheds(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{X: 1}, 1)
	q.deliver()
	q.w.SetWeight(o, 0.5)
	q.w.Shed(1000)
	q.edit(o).X = 2
	q.deliver()
	if q.rock(o.ID()).X != 1 || q.w.stats.Shed != 1 {
		t.Fatalf("the rock is at %d, %d were shed", q.rock(o.ID()).X, q.w.stats.Shed)
	}
	q.p.RequestDigest(1)
	q.deliver()
	if state, _ := q.r.Digest(); state != DigestEqual || q.rock(o.ID()).X != 2 || q.w.stats.Shed != 1 {
		t.Errorf("the digest says %d, the rock is at %d, %d were shed", state, q.rock(o.ID()).X, q.w.stats.Shed)
	}
}

// newCrowd is a client that lacks so many rocks.
func newCrowd(t *testing.T, rocks int) *pair {
	q := newPair(t, 0)
	for i := range rocks {
		q.spawnRock(q.w, rock{X: int32(i * i * 37)}, 1)
	}
	return q
}

// A packet is full when no bit is left, and a budget used up when nothing is left of it, not before.
func TestARecordMayTakeTheLastBit(t *testing.T) {
	packets, budgets := 0, 0
	for n := 2; n < 40; n++ {
		q := newCrowd(t, n)
		whole, _ := q.next()
		size, bits := len(whole[0]), 0
		last := &q.p.cut.list[n-1]
		for i := range q.p.cut.list[:n-1] {
			bits += int(q.p.cut.list[i].size)
		}
		if whole[0][atFlags]>>atPadding == 0 {
			packets++
			for less := range 2 {
				q := newCrowd(t, n)
				q.tick++
				q.w.Capture(q.tick)
				snap(q.p, q.tick, Limit{Packets: 1, PacketSize: size - less})
				if fits := q.w.stats.Waited == 0; fits != (less == 0) {
					t.Errorf("%d records of %d bytes fit a packet of %d: %v", n, size, size-less, fits)
				}
			}
		}
		if bits%8 == 0 {
			budgets++
			for more := range 2 {
				q := newCrowd(t, n)
				q.p.SetBudget(Budget{PerTick: bits/8 + more, Burst: bits/8 + more})
				q.next()
				if went := q.w.stats.Waited == 0; went != (more == 1) {
					t.Errorf("after records of %d bits one of %d goes on a budget of %d bytes: %v", bits, last.size, bits/8+more, went)
				}
			}
		}
	}
	if packets == 0 || budgets == 0 {
		t.Errorf("%d packets and %d budgets were full to the bit", packets, budgets)
	}
}
