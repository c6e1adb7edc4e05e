package netvar

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/state"
)

// someOf is an audience that includes each client for one in so many objects.
type someOf struct{ object, parts int }

func (a someOf) Includes(p *interest.Viewer) bool { return (a.object+p.Handle.(int))%a.parts == 0 }

// BenchmarkVeiledIds reports the cost of veiled ids in bytes: the same objects with the same
// audiences, in dense slots and in veiled ones. Each client sees one in so many objects.
func BenchmarkVeiledIds(b *testing.B) {
	const clients, ticks = 8, 200
	for _, objects := range []int{16, 100, 1000} {
		for _, parts := range []int{1, 4} {
			for _, veiled := range []bool{false, true} {
				b.Run(fmt.Sprintf("objects=%d/sees=1in%d/veiled=%v", objects, parts, veiled), func(b *testing.B) {
					for b.Loop() {
						w := NewWorld(state.NewTable(classOf[crate](b, "crate")))
						f := &fleet{w: w, tick: 1000, random: newFleet(b, 1, 0, nil, 0).random}
						for i := range objects {
							v, a := &crate{X: f.place(), Y: f.place()}, someOf{i, parts}
							class := w.table.Classes()[0]
							if veiled {
								f.crates = append(f.crates, w.SpawnFor(class, unsafe.Pointer(v), a, 0, f.tick))
							} else {
								f.crates = append(f.crates, w.Spawn(class, unsafe.Pointer(v), 0, f.tick))
								w.SetAudience(f.crates[i], a)
							}
							f.drift = append(f.drift, [4]int32{})
						}
						for i := range clients {
							f.clients = append(f.clients, fleetClient{peer: w.NewPeer(f.tick), delay: 3})
							f.clients[i].peer.Handle = i
						}
						for range 40 {
							f.step(objects)
						}
						joined := w.stats.Bytes
						f.begin()
						for range ticks {
							f.step(objects)
						}
						records := float64(w.stats.Records - f.counts.Records)
						b.ReportMetric(float64(w.stats.Bytes-f.counts.Bytes)/records, "B/record")
						b.ReportMetric(float64(joined)/float64(clients), "B/join")
						b.ReportMetric(float64(f.spent.encode.Microseconds())/ticks, "encode-µs/tick")
						b.ReportMetric(float64(len(f.clients[0].peer.entries)), "slots")
					}
				})
			}
		}
	}
}
