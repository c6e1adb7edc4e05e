package netvar

import (
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/state"
)

// BenchmarkMaskedSnapshots is 250 objects that all move, to 100 clients. Either all fields are
// readable by all clients, or each object has fields that only its owner reads.
func BenchmarkMaskedSnapshots(b *testing.B) {
	for _, sub := range []struct {
		name string
		make func(tb testing.TB) *state.Class
	}{
		{"open", func(tb testing.TB) *state.Class { return classOf[openScout](tb, "scout") }},
		{"masked", func(tb testing.TB) *state.Class { return classOf[ownScout](tb, "scout") }},
	} {
		b.Run(sub.name, func(b *testing.B) {
			c := sub.make(b)
			w := NewWorld(state.NewTable(c))
			w.SetReaders(c, &rules{})
			var peers []*Peer
			for i := range 100 {
				peers = append(peers, w.NewPeer(1))
				peers[i].Handle = i + 1
			}
			var list []*state.Object
			for i := range 250 {
				list = append(list, w.Spawn(c, unsafe.Pointer(new(openScout)), uint64(1+i%100), 1))
			}
			tick := uint64(0)
			var packets [][]byte
			step := func() {
				tick++
				for _, o := range list {
					w.Edit(o)
					s := live[openScout](o)
					s.X += 3
					s.Y--
					s.Ammo++
				}
				w.Capture(tick)
				for _, p := range peers {
					var first uint64
					packets, first = p.AppendSnapshot(packets[:0], tick, wide)
					p.Ack([]Range{{first, first + uint64(len(packets)) - 1}})
				}
			}
			for range 2 * state.Horizon {
				step()
			}
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(list)*len(peers)), "ns/object-peer")
		})
	}
}

type openScout struct {
	X, Y, Z int32
	Ammo    int32
}

// ownScout has the memory layout of openScout.
type ownScout struct {
	X, Y, Z int32
	Ammo    int32 `net:"read=owner"`
}
