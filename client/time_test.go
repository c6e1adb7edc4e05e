package client

import (
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// scaleTold is a client that a server has told one line of scaled time, after a frame.
func scaleTold(t *testing.T, line *netloopv1.TimeScale) *Client {
	t.Helper()
	c, err := newClient(Config{Schema: netloop.NewSchema("scaled", 1, 0)}, clock.NewVirtual())
	if err != nil {
		t.Fatal(err)
	}
	s := transport.NewSession(c.sessionConfig())
	c.connected(s, &netloopv1.Welcome{
		Protocol: 1, ClientId: 1, TickRate: &netloopv1.Rate{Num: 10, Den: 1}, FixedRate: &netloopv1.Rate{Num: 10, Den: 1}, SendEvery: 1,
		Epoch: &netloopv1.Epoch{Tick: 1},
	})
	frame, err := proto.Marshal(&netloopv1.Frame{Kind: &netloopv1.Frame_TimeScale{TimeScale: line}})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.ReceiveStream(0, append(protowire.AppendVarint(nil, uint64(len(frame))), frame...)) // What it says shows below.
	c.Step(time.Second)
	c.Step(time.Second)
	return c
}

func TestAScaleThatIsNoneEndsTheConnection(t *testing.T) {
	for name, line := range map[string]*netloopv1.TimeScale{
		"nothing":              {},
		"no denominator":       {Num: 1},
		"too fast":             {Num: 17, Den: 1},
		"a denominator beyond": {Num: 1, Den: 1_000_001},
		"as much as there is":  {Num: math.MaxUint64, Den: math.MaxUint64},
		"overflowing":          {Num: math.MaxUint64, Den: 1 << 60},
		"a time beyond":        {Num: 1, Den: 1, ScaledNs: math.MaxInt64 + 1},
	} {
		c := scaleTold(t, line)
		if why, ok := c.session.Cause(); !ok || why.Code != transport.CodeProtocol {
			t.Errorf("%s: %+v, %v", name, why, ok)
		}
		if c.now.ScaleNum != 1 || c.now.ScaleDen != 1 {
			t.Errorf("%s: it runs at %d/%d", name, c.now.ScaleNum, c.now.ScaleDen)
		}
	}
}

func TestAHandshakeSaysTheScaleOrIsRefused(t *testing.T) {
	join := func(line *netloopv1.TimeScale) *Client {
		c, err := newClient(Config{Schema: netloop.NewSchema("scaled", 1, 0)}, clock.NewVirtual())
		if err != nil {
			t.Fatal(err)
		}
		c.connected(transport.NewSession(c.sessionConfig()), &netloopv1.Welcome{
			Protocol: 1, ClientId: 1, TickRate: &netloopv1.Rate{Num: 10, Den: 1}, FixedRate: &netloopv1.Rate{Num: 10, Den: 1}, SendEvery: 1,
			Epoch: &netloopv1.Epoch{Tick: 300}, TimeScale: line,
		})
		c.Step(time.Second)
		return c
	}
	c := join(&netloopv1.TimeScale{Num: 1, Den: 3, Tick: 299, ScaledNs: 5, Fraction: 1 << 63})
	if c.Closed() != nil || c.now.ScaleDen != 3 || c.now.ScaledTime != 33333333+5 {
		t.Errorf("%v, scaled time %d at 1/%d", c.Closed(), c.now.ScaledTime, c.now.ScaleDen)
	}
	if c = join(nil); c.Closed() != nil || c.now.ScaledTime != 30*time.Second {
		t.Errorf("%v, scaled time %v", c.Closed(), c.now.ScaledTime)
	}
	for _, bad := range []*netloopv1.TimeScale{{}, {Num: 17, Den: 1}, {Den: math.MaxUint64}, {Den: 1, ScaledNs: math.MaxInt64 + 1}} {
		if c := join(bad); c.Closed() == nil || c.Closed().Code != transport.CodeProtocol {
			t.Errorf("%v: %v", bad, c.Closed())
		}
	}
}

// Whatever else a server says of it, time is a time, and does not pass where it cannot.
func TestAnyLineOfScaledTimeIsOne(t *testing.T) {
	for _, tt := range []struct {
		line *netloopv1.TimeScale
		want time.Duration // at tick 1, which is 100 ms
	}{
		{&netloopv1.TimeScale{Num: 16, Den: 1}, 1600 * time.Millisecond},
		{&netloopv1.TimeScale{Num: 1, Den: 3, ScaledNs: 5, Fraction: 1 << 63}, 33333333 + 5}, // ⅓ and ½ make no whole.
		{&netloopv1.TimeScale{Num: 2, Den: 3, ScaledNs: 5, Fraction: 1 << 63}, 66666666 + 6},
		{&netloopv1.TimeScale{Num: 16, Den: 1, ScaledNs: math.MaxInt64, Fraction: math.MaxUint64}, math.MaxInt64},
		{&netloopv1.TimeScale{Num: 16, Den: 1, Tick: math.MaxUint64, ScaledNs: 7}, 7},
	} {
		c := scaleTold(t, tt.line)
		if why, ok := c.session.Cause(); ok {
			t.Errorf("%v: %+v", tt.line, why)
		}
		if c.now.GameTime != 100*time.Millisecond || c.now.ScaledTime != tt.want || c.now.ScaledDelta < 0 {
			t.Errorf("%v: scaled time %d at %v, want %d", tt.line, c.now.ScaledTime, c.now.GameTime, tt.want)
		}
	}
}
