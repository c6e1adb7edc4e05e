package cubes

import (
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// wander yields cubes of which some make random steps. Every value of a field occurs.
type wander struct {
	random *rand.Rand
	left   int
	frame  Frame
}

func newWander(frames int) *wander {
	w := &wander{random: rand.New(rand.NewPCG(7, 7)), left: frames}
	for i := range w.frame {
		w.scatter(&w.frame[i])
	}
	return w
}

// scatter sets random values of the cube.
func (w *wander) scatter(c *Cube) {
	c.Largest = w.random.Int32N(4)
	for i := range 3 {
		c.Smallest[i] = w.random.Int32N(MaxSmallest + 1)
		c.Position[i] = w.random.Int32N(2*MaxXY+1) - MaxXY
	}
	c.Position[2] = w.random.Int32N(MaxZ + 1)
	c.Touched = w.random.IntN(2) == 0
}

func (w *wander) Next(to *Frame) error {
	if w.left == 0 {
		return io.EOF
	}
	w.left--
	for range 150 {
		c := &w.frame[w.random.IntN(Count)]
		switch w.random.IntN(4) {
		case 0:
			w.scatter(c)
		case 1:
			c.Touched = !c.Touched
		default:
			for i := range 3 {
				c.Smallest[i] = min(max(c.Smallest[i]+w.random.Int32N(9)-4, 0), MaxSmallest)
				c.Position[i] = min(max(c.Position[i]+w.random.Int32N(65)-32, 0), MaxZ)
			}
		}
	}
	*to = w.frame
	return nil
}

func size(r *Report, coder string) *Size {
	for i := range r.Sizes {
		if r.Sizes[i].Coder == coder {
			return &r.Sizes[i]
		}
	}
	return &Size{}
}

func TestEveryFrameIsDecodedExactly(t *testing.T) {
	r, err := Run(newWander(300), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Frames != 300 || r.ChangedShare() < 0.5 || r.ChangedShare() > 0.7 {
		t.Errorf("%d frames, %.2f of the cubes change", r.Frames, r.ChangedShare())
	}
	netloopSize, absolute := size(r, "default"), size(r, "absolute")
	if r.Packets < 3*r.Frames/2 {
		t.Errorf("%d packets for %d frames; most frames must need two", r.Packets, r.Frames)
	}
	if netloopSize.Bytes == 0 || netloopSize.Bytes > absolute.Bytes {
		t.Errorf("the records take %.0f kbit/s, with whole cubes %.0f", r.Kbits(netloopSize), r.Kbits(absolute))
	}
}

func TestLostChangesArriveLater(t *testing.T) {
	r, err := Run(newWander(300), Options{Loss: 0.2, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Lost < 30 {
		t.Errorf("%d packets were lost, want more", r.Lost)
	}
}

// wrong yields a frame with an invalid position of a cube.
type wrong struct{ *wander }

func (w wrong) Next(to *Frame) error {
	err := w.wander.Next(to)
	to[5].Position[2] = MaxZ + 1
	return err
}

func TestARunFailsOnInvalidInput(t *testing.T) {
	for _, c := range []struct {
		src  Source
		want string
	}{
		{wrong{newWander(10)}, "frame 0: the client has"},
		{newWander(Delay), "6 frames, of which the first 6 do not count"},
	} {
		if _, err := Run(c.src, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want an error with %q", err, c.want)
		}
	}
}

func TestARunStopsAndMeasures(t *testing.T) {
	var now time.Duration
	r, err := Run(newWander(300), Options{Frames: 26, Clock: func() time.Duration { now += 10 * time.Microsecond; return now }})
	if err != nil {
		t.Fatal(err)
	}
	if r.Frames != 26 || r.Micros() != 10 {
		t.Errorf("%d frames, %v µs each, want 26 and 10", r.Frames, r.Micros())
	}
	raw, quantised := size(r, "raw"), size(r, "quantised")
	if raw.Bytes != 20*25341 || quantised.Bytes != 20*Count*10 {
		t.Errorf("raw %d, quantised %d bytes in 20 frames", raw.Bytes, quantised.Bytes)
	}
	if got := r.Kbits(quantised); got != 4324.8 {
		t.Errorf("quantised %v kbit/s, want 4324.8", got)
	}
	if got := r.BitsPerCube(quantised); got != 80 {
		t.Errorf("quantised %v bits per cube, want 80", got)
	}
}

// The short form of `make cubes`: the package's capture, every frame through server and client. The
// general coder takes at most the bytes of one written for these cubes.
func TestNoLargerThanTheBitPacker(t *testing.T) {
	file, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if share := r.ChangedShare(); r.Frames != 600 || share < 0.11 || share > 0.14 {
		t.Errorf("%d frames, in which %.3f of the cubes change", r.Frames, share)
	}
	netloopSize, bitPacker := r.Kbits(size(r, "default")), r.Kbits(size(r, "fiedler"))
	if t.Logf("%.1f kbit/s, the bit packer %.1f", netloopSize, bitPacker); netloopSize > 0.9*bitPacker {
		t.Errorf("%.1f kbit/s, want at most nine tenths of the %.1f of the bit packer", netloopSize, bitPacker)
	}
}
