package schema

import (
	"os"
	"runtime"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/netloop/netloop/internal/testing/proctest"
	"github.com/netloop/netloop/internal/transport"
)

// A client that floods with any messages has used at most 5 % of a core for a second when it is
// kicked.
func TestAFlooderIsOutBeforeItHasCostMuch(t *testing.T) {
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("it depends on timing: make verify runs it")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, b := range bombs {
		c, err := b.codec()
		if err != nil {
			t.Fatal(err)
		}
		decoded, fits := b.largest(&c)
		for _, m := range [][]byte{decoded, fits} {
			least, most := time.Hour, 0
			for range 3 {
				took, frames := flooded(t, &c, m)
				least, most = min(least, took), max(most, frames)
			}
			t.Logf("%s: out after %d frames of %d bytes and %v", b.name, most, len(m), least)
			if least > 50*time.Millisecond {
				t.Errorf("%s: a flood of %d bytes each takes %v", b.name, len(m), least)
			}
		}
	}
}

// flooded sends a message again and again, all at once but for the ticks that take it in, until the
// sender is out.
func flooded(t *testing.T, c *Codec, m []byte) (took time.Duration, frames int) {
	t.Helper()
	inbox := transport.NewInbox(1<<20, nil)
	s, link := transport.NewSession(transport.SessionConfig{
		Inbox: inbox, Limits: transport.DefaultLimits,
		Size: func(m *transport.Message) int { return c.Size(m.Payload) },
		Decode: func(m *transport.Message) (any, any, error) {
			v, err := c.Decode(m.Payload)
			return nil, v, err
		},
	})
	message := protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), m)
	body := protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), message)
	frame := protowire.AppendBytes(nil, body)
	var spare []transport.Arrival
	start := proctest.ThreadTime()
	for ; ; frames++ {
		if _, out := s.Cause(); out {
			return proctest.ThreadTime() - start, frames
		}
		if err := link.ReceiveStream(0, frame); err != nil {
			t.Fatal(err)
		}
		spare = inbox.Swap(spare)
	}
}
