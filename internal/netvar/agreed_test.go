package netvar

import (
	"bytes"
	"errors"
	"testing"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/wire"
)

// A packet with a header that contradicts earlier packets of its snapshot is rejected, and the
// right one is accepted afterwards.
func TestPacketsOfOneSnapshotMustFitTogether(t *testing.T) {
	q := newPair(t, 0)
	for i := range 60 {
		q.spawnRock(q.w, rock{X: int32(i)}, 1)
	}
	q.p.RequestDigest(1)
	q.w.Capture(1)
	packets, _ := snap(q.p, 1, Limit{Packets: 2, PacketSize: 120})
	var h packet.Header
	in := wire.NewReader(packets[1])
	if packet.ReadHeader(&in, 1, &h); len(packets) != 2 || !h.HasBehind || !h.HasDigest || !h.HasLoading || h.Left == 0 {
		t.Fatalf("%d packets, %+v", len(packets), h)
	}
	mustApply(t, q.r, q.p, packets[0])
	for _, c := range []struct {
		what string
		at   int
	}{
		{"complete", packet.AtFlags}, {"count", 3}, {"behind", packet.AtBehind}, {"left", packet.AtBehind + 1}, {"total", packet.AtBehind + 5}, {"digest", packet.AtBehind + 10},
	} {
		b := bytes.Clone(packets[1])
		b[c.at] ^= 2
		if _, err := q.r.Apply(b); !errors.Is(err, packet.ErrHeader) {
			t.Errorf("another %s says: %v", c.what, err)
		}
	}
	if a, err := q.r.Apply(packets[1]); err != nil || !a.SnapshotComplete {
		t.Errorf("%+v, %v", a, err)
	}
}
