package input

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/testing/seeds"
)

// control is a typical input, and odd has all kinds of fields.
type control struct {
	Turn, Thrust int8
	Aim          float32 `net:"quant=1/512,range=-4:4"`
	Fire         bool
}

type odd struct {
	N    int64
	F    float64
	Name string  `net:"max=6"`
	Keys []uint8 `net:"max=4"`
	On   bool
}

func formOf(t testing.TB, v any) *Form {
	t.Helper()
	p, err := codec.Compile(reflect.TypeOf(v))
	if err != nil {
		t.Fatal(err)
	}
	return NewForm(p, nil)
}

// opaque is the form of messages with a decoder; messages that begin with 0xff are bad.
func opaque() *Form {
	return NewForm(nil, func(b []byte) error {
		if len(b) > 0 && b[0] == 0xff {
			return ErrPacket
		}
		return nil
	})
}

// player makes random inputs that change now and then, as people's do.
type player struct {
	rng *rand.Rand
	c   control
	o   odd
	b   []byte
}

func (p *player) next(f *Form, to *codec.Values) {
	if p.rng.IntN(8) == 0 {
		p.c = control{Turn: int8(p.rng.IntN(3) - 1), Thrust: int8(p.rng.Uint32()), Fire: p.rng.IntN(2) == 0, Aim: p.c.Aim}
		p.o = odd{p.rng.Int64(), p.rng.NormFloat64(), "player"[:p.rng.IntN(7)], make([]byte, p.rng.IntN(5)), p.rng.IntN(2) == 0}
		p.b = slices.Repeat([]byte{byte(p.rng.IntN(255))}, p.rng.IntN(MaxSize))
	}
	p.c.Aim += p.rng.Float32()/16 - 1./32
	switch {
	case f.plan == nil:
		to.Blobs[0] = append(to.Blobs[0][:0], p.b...)
	case f.plan.Type() == reflect.TypeFor[odd]():
		f.plan.Capture(unsafe.Pointer(&p.o), to)
	default:
		f.plan.Capture(unsafe.Pointer(&p.c), to)
	}
}

// equal compares two inputs of a form.
func (f *Form) equal(a, b *codec.Values) bool {
	if f.plan == nil {
		return string(a.Blobs[0]) == string(b.Blobs[0])
	}
	return f.plan.Equal(a, b)
}

// store makes the values of a message.
func (f *Form) store(t *testing.T, to *codec.Values, message []byte) {
	t.Helper()
	if f.plan == nil {
		to.Blobs[0] = append(to.Blobs[0][:0], message...)
		return
	}
	p := reflect.New(f.plan.Type())
	if err := f.plan.Decode(message, p.UnsafePointer()); err != nil {
		t.Fatal(err)
	}
	f.plan.Capture(p.UnsafePointer(), to)
}

func randomView(rng *rand.Rand, last View) View {
	switch rng.IntN(10) {
	case 0:
		return View{}
	case 1:
		from := rng.Uint64N(1 << 20)
		return View{from, from + rng.Uint64N(70), rng.Float32()}
	case 2:
		return View{last.From, last.To, rng.Float32()}
	}
	last.Alpha += rng.Float32() / 8
	last.From, last.To = last.From+1, last.To+1
	return last
}

// TestAPacketIsReadAsItWasWritten plays random inputs of all forms into random rings, and reads
// every packet back: the newest inputs, in order, with their steps and views.
func TestAPacketIsReadAsItWasWritten(t *testing.T) {
	forms := []*Form{formOf(t, control{}), formOf(t, odd{}), formOf(t, struct{}{}), opaque()}
	for seed := range seeds.Of(t, 400) {
		rng := rand.New(rand.NewPCG(seed, 3))
		f := forms[rng.IntN(len(forms))]
		p := player{rng: rng}
		ring, reader := NewRing(f, hz60), NewReader(f, MinRepeats)
		step, view := rng.Uint64N(1<<uint(1+rng.IntN(40))), View{}
		for range 60 {
			step++
			if rng.IntN(12) == 0 {
				step += rng.Uint64N(1 << uint(rng.IntN(9)))
			}
			view = randomView(rng, view)
			p.next(f, ring.Add(step, view))
			ring.Confirm(step-min(step, rng.Uint64N(20)), uint16(rng.Uint32()), ring.generation)
			packet := ring.AppendPacket(nil, MaxPacket)
			near := step + rng.Uint64N(200) - min(step, 100)
			reader.Begin(packet, near)
			n, last := 0, step+1
			for reader.Next() {
				at := reader.Step()
				v, seen, ok := reader.Read()
				if !ok {
					break
				}
				n++
				made := ring.slot(at)
				if at >= last || made.step != at || !f.equal(v, &made.v) || seen != made.view {
					t.Fatalf("seed %d: input %d of step %d: read as of step %d, %v, %+v, want %v, %+v", seed, n, step, at, v, seen, made.v, made.view)
				}
				last = at
			}
			if err := reader.Err(); err != nil && len(packet) > 0 {
				t.Fatalf("seed %d, step %d: after %d inputs: %v", seed, step, n, err)
			}
			if len(packet) > 0 && reader.left != 0 || n > MinRepeats {
				t.Fatalf("seed %d: %d inputs, %d left", seed, n, reader.left)
			}
		}
	}
}

// shooter plays as people do: keys are held for a while, the aim sweeps and stops.
type shooter struct {
	rng   *rand.Rand
	c     control
	speed float64
	aim   float64
}

func (p *shooter) next() control {
	if p.rng.IntN(20) == 0 {
		p.c.Turn, p.c.Thrust = int8(p.rng.IntN(3)-1), int8(p.rng.IntN(2)*127)
	}
	if p.rng.IntN(10) == 0 {
		p.c.Fire = !p.c.Fire
	}
	switch p.rng.IntN(16) {
	case 0:
		p.speed = p.rng.NormFloat64() / 10
	case 1, 2:
		p.speed = 0
	}
	p.speed *= 0.95
	p.aim = math.Remainder(p.aim+p.speed, 2*math.Pi)
	p.c.Aim = float32(p.aim)
	return p.c
}

// TestInputsCostFewBytes plays a typical input over a link with a round trip of 150 ms, 20 ms
// jitter and a loss of 5 %, 60 times a second: inputs add at most 30 bytes to a datagram, views
// included.
func TestInputsCostFewBytes(t *testing.T) {
	f := formOf(t, control{})
	rng := rand.New(rand.NewPCG(7, 7))
	p, ring := shooter{rng: rng}, NewRing(f, hz60)
	bytes, from := 0, 1000.0
	const steps, head = 5000, 3 // tag and length of the field
	confirmed := uint64(0)
	for step := uint64(1010); step < 1010+steps; step++ {
		c := p.next()
		from += 1 + rng.NormFloat64()/100
		view := View{uint64(from), uint64(from) + 1, float32(from - math.Floor(from))}
		f.plan.Capture(unsafe.Pointer(&c), ring.Add(step, view))
		// Inputs made 150 ms ago, plus up to 20 ms of jitter each way, are confirmed.
		if rng.Float64() > 0.05 {
			confirmed = max(confirmed, step-9-rng.Uint64N(3))
			ring.Confirm(confirmed, 0xffff, 0)
		}
		bytes += len(ring.AppendPacket(nil, MaxPacket)) + head
	}
	mean := float64(bytes) / steps
	t.Logf("%.1f bytes in a datagram", mean)
	if mean > 30 {
		t.Errorf("inputs take %.1f bytes of a datagram, at most 30", mean)
	}
}

// The memory of a buffer and of its reader does not grow with the number of packets.
func TestABufferTakesLittleMemory(t *testing.T) {
	for steps, most := range map[uintptr]uintptr{window: MaxMemory60Hz, MaxWindow: MaxMemory} {
		if n := unsafe.Sizeof(Buffer{}) + steps*unsafe.Sizeof(waiting{}); n > most {
			t.Errorf("a buffer of %d steps takes %d bytes", steps, n)
		}
	}
	f := opaque()
	var due Due
	b, reader, ring := NewBuffer(window), NewReader(f, MinRepeats), NewRing(f, hz60)
	for step := uint64(1); step <= 1000; step++ {
		in := ring.Add(step, View{})
		in.Blobs[0] = append(in.Blobs[0][:0], make([]byte, MaxSize)...)
		in.Blobs[0][0] = byte(step % 100)
		b.Take(reader, ring.AppendPacket(nil, 1000), step-1)
		b.Next(step, &due)
	}
	if n := cap(reader.scratch) + cap(reader.encoded); b.Counts().Applied != 1000 || n > 4*MinRepeats*MaxSize {
		t.Errorf("after %d inputs a reader keeps %d bytes", b.Counts().Applied, n)
	}
}

// Of all steps with the same wire value the one nearest to the due step is taken: half of them
// ahead is too far ahead, and as far behind is late.
func TestStepsAreTheNearestToTheDueStep(t *testing.T) {
	const done, half = 100_000, 1 << 15
	for step, want := range map[uint64]Counts{done + half: {Ahead: 1}, done + 1 - half: {Late: 1}, done + 1: {}, done: {Late: 1}} {
		ring := NewRing(opaque(), hz60)
		ring.Add(step, View{})
		if counts, _ := NewBuffer(window).Take(NewReader(opaque(), MinRepeats), ring.AppendPacket(nil, 100), done); counts != want {
			t.Errorf("step %d, when %d has run: %+v, want %+v", step, done, counts, want)
		}
	}
}

// SetBack removes the inputs of all later steps, also that of step 1.
func TestASetBackRingKeepsNoLaterInput(t *testing.T) {
	f := opaque()
	for _, to := range []uint64{0, 1, 2} {
		r := NewRing(f, hz60)
		for step := uint64(1); step <= 3; step++ {
			f.store(t, r.Add(step, View{}), []byte("old"))
		}
		r.SetBack(to)
		for step := uint64(1); step <= 3; step++ {
			if _, kept := r.At(step); kept != (step <= to) {
				t.Errorf("set back to %d: the input of step %d is kept: %t", to, step, kept)
			}
		}
	}
}
