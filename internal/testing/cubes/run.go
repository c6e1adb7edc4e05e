package cubes

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Options configure a run.
type Options struct {
	Frames int                  // at most so many; 0 is all
	Loss   float64              // of packets, from 0 to 1
	Seed   uint64               // of the loss
	Clock  func() time.Duration // monotonic; nil measures no time
}

// Report is the result of a run.
type Report struct {
	Frames  int // all but the first six count below
	Changed int // cubes that differ from the acknowledged frame
	Records int // sent records
	Packets int // with these records
	Lost    int // lost packets
	Sizes   []Size
	Encode  time.Duration // time for all counted snapshots
}

// Size is the size of the frames for one coder; the first one of a report is netloop's.
type Size struct {
	Coder string
	Bytes int
}

func (r *Report) counted() float64 { return float64(r.Frames - Delay) }

// Kbits returns kbit/s.
func (r *Report) Kbits(s *Size) float64 { return float64(s.Bytes) / r.counted() * Rate * 8 / 1000 }

// BitsPerCube returns the bits per cube and frame, whether it has changed or not.
func (r *Report) BitsPerCube(s *Size) float64 { return float64(s.Bytes) * 8 / r.counted() / Count }

// Micros returns the mean time in µs that the encoding of a snapshot took.
func (r *Report) Micros() float64 { return r.Encode.Seconds() * 1e6 / r.counted() }

// ChangedShare returns the mean fraction of cubes that differ from the acknowledged frame.
func (r *Report) ChangedShare() float64 { return float64(r.Changed) / r.counted() / Count }

// remembered is the number of kept frames: enough for an acknowledgement after many lost ones.
const remembered = 64

// runner is a server with one client.
type runner struct {
	opt     Options
	random  *rand.Rand
	world   *netvar.World
	peer    *netvar.Peer
	replica *replica.Replica
	objects [Count]*state.Object
	frames  [remembered]Frame     // the last ones, by number
	lost    [remembered]bool      // a packet of that frame's snapshot was lost
	acks    [Delay][]netvar.Range // by frame number
	packets [][]byte
	report  Report
}

// A snapshot may need many packets, and the first snapshot does. The limit is netvar's, not a
// link's.
var limit = netvar.Limit{Packets: packet.MaxPackets, PacketSize: packet.MaxSize}

// Run passes all frames of a source through a server and a client, and counts. Without loss it
// fails if a frame is not decoded exactly; with loss, if the client lacks the last frame soon
// after it.
func Run(src Source, opt Options) (*Report, error) {
	table, class, err := newTable()
	if err != nil {
		return nil, err
	}
	r := &runner{opt: opt, random: rand.New(rand.NewPCG(opt.Seed, 0)), world: netvar.NewWorld(table), replica: replica.New(table)}
	r.peer = r.world.NewPeer(1)
	for i := range r.objects {
		r.objects[i] = r.world.Spawn(class, unsafe.Pointer(new(cubeState)), 0, 1)
	}
	r.report.Sizes = append(r.report.Sizes, Size{Coder: "default"})
	for _, c := range coders {
		r.report.Sizes = append(r.report.Sizes, Size{Coder: c.name})
	}
	for opt.Frames == 0 || r.report.Frames < opt.Frames {
		now := r.frame(r.report.Frames)
		if err := src.Next(now); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if err := r.step(); err != nil {
			return nil, fmt.Errorf("cubes: frame %d: %w", r.report.Frames, err)
		}
		r.report.Frames++
	}
	if r.report.Frames <= Delay {
		return nil, fmt.Errorf("cubes: %d frames, of which the first %d do not count", r.report.Frames, Delay)
	}
	return &r.report, r.settle()
}

// frame returns frame n, or the first one for earlier numbers.
func (r *runner) frame(n int) *Frame { return &r.frames[max(n, 0)%len(r.frames)] }

// step passes the next frame through server and client.
func (r *runner) step() error {
	n := r.report.Frames
	now := r.frame(n)
	for i := range now {
		if n == 0 || now[i] != r.frame(n - 1)[i] {
			r.world.Edit(r.objects[i])
			(*cubeState)(r.objects[i].Live()).set(&now[i])
		}
	}
	bytes, spent, err := r.snapshot(n, r.opt.Loss)
	if err != nil {
		return err
	}
	if n >= Delay {
		r.count(n, bytes, spent)
	}
	if r.opt.Loss == 0 {
		return r.equal(now)
	}
	return nil
}

// snapshot sends the changes of frame n. It returns the bytes of records and the time of
// encoding.
func (r *runner) snapshot(n int, loss float64) (bytes int, spent time.Duration, err error) {
	acks := &r.acks[n%Delay]
	if len(*acks) > 0 {
		r.peer.Ack(*acks)
	}
	*acks = (*acks)[:0]
	r.lost[n%remembered] = false
	tick := uint64(n) + 1
	r.world.Capture(tick)
	start := r.now()
	r.packets, _ = r.peer.AppendSnapshot(r.packets[:0], tick, limit)
	spent = r.now() - start
	for _, p := range r.packets {
		size, err := packet.RecordBytes(p)
		if err != nil {
			return 0, 0, err
		}
		bytes += size
		if loss > 0 && r.random.Float64() < loss {
			r.report.Lost++
			r.lost[n%remembered] = true
			continue
		}
		a, err := r.replica.Apply(p)
		if err != nil {
			return 0, 0, err
		}
		if a.Ack {
			*acks = append(*acks, netvar.Range{First: a.Packet, Last: a.Packet})
		}
	}
	r.replica.Events()
	return bytes, spent, nil
}

func (r *runner) now() time.Duration {
	if r.opt.Clock == nil {
		return 0
	}
	return r.opt.Clock()
}

// count adds up the sizes of frame n for all coders. The other coders ignore packet loss.
func (r *runner) count(n, bytes int, spent time.Duration) {
	acked := n - Delay
	for acked > 0 && acked > n-remembered+Delay+1 && r.lost[acked%remembered] {
		acked--
	}
	now, base, before := r.frame(n), r.frame(acked), r.frame(acked-Delay)
	r.report.Encode += spent
	for i := range now {
		if now[i] != base[i] {
			r.report.Changed++
		}
	}
	r.report.Sizes[0].Bytes += bytes
	for i, c := range coders {
		r.report.Sizes[1+i].Bytes += (c.bits(now, base, before) + 7) / 8
	}
}

// equal compares the client's cubes with a frame.
func (r *runner) equal(now *Frame) error {
	for i := range now {
		o, ok := r.replica.Get(r.objects[i].ID())
		if !ok {
			return fmt.Errorf("the client lacks cube %d", i)
		}
		if got := (*cubeState)(o.Live()).cube(); got != now[i] {
			return fmt.Errorf("the client has %+v for cube %d, want %+v", got, i, now[i])
		}
	}
	return nil
}

// settle resends lost changes: two snapshots after the loss is known, the client has every cube.
func (r *runner) settle() error {
	r.report.Records, r.report.Packets = int(r.world.Stats().Records), int(r.world.Stats().Packets)
	last := r.frame(r.report.Frames - 1)
	for n := r.report.Frames; n < r.report.Frames+2*Delay; n++ {
		if _, _, err := r.snapshot(n, 0); err != nil {
			return err
		}
	}
	if err := r.equal(last); err != nil {
		return errors.Join(errors.New("cubes: after the last frame"), err)
	}
	return nil
}
