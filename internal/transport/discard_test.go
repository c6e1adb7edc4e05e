package transport

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// zeroFrame returns a frame of a kind; its body is n zero bytes, which are malformed.
func zeroFrame(kind protowire.Number, n int) []byte {
	return append(appendFrameHead(nil, kind, n), make([]byte, n)...)
}

// undecodable has a decoder that refuses every message, and counts them.
func undecodable(calls *int) SessionConfig {
	return SessionConfig{Decode: func(*Message) (any, any, error) { *calls++; return nil, nil, errors.New("no") }}
}

// Discarded data is one arrival, whatever its size, and is charged as one message, and one more for
// each KiB.
func TestDiscardedDataIsChargedAsMessages(t *testing.T) {
	for name, c := range map[string]struct {
		frame []byte
		want  uint64
	}{
		"an empty frame":         {[]byte{0}, 1},
		"an unknown kind":        {zeroFrame(frameUnknown, 1), 1},
		"a large unknown kind":   {zeroFrame(frameUnknown, 16<<10-5), 16},
		"a request for nothing":  {zeroFrame(frameDigest, 0), 1},
		"a malformed message":    {zeroFrame(frameMessage, 5), 1},
		"a large malformed one":  {zeroFrame(frameMessage, 3<<10), 4},
		"an unknown stage":       {append(appendFrameHead(nil, frameMessage, 2), 2<<3, 55), 1},
		"an undecodable message": {append(appendFrameHead(nil, frameMessage, 2), 1<<3, 5), 1},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := newEnd(false, undecodable(new(int))), newEnd(true, undecodable(new(int)))
			for round := 1; round <= 2; round++ {
				for range 10 {
					if err := server.ReceiveStream(5, c.frame); err != nil {
						t.Fatal(err)
					}
				}
				as := server.arrivals()
				if len(as) != 1 || as[0].Kind != Discarded || as[0].Value != 10*c.want || as[0].Session != server.Session || as[0].At != 5 {
					t.Fatalf("round %d: arrivals %+v", round, as)
				}
			}
			if err := client.ReceiveStream(5, c.frame); err == nil && len(client.arrivals()) != 0 {
				t.Error("a server's is held against it")
			}
		})
	}
}

// Beyond the inbox's bound the stream ends the session, and a datagram is dropped; a swap resets
// the bound.
func TestDiscardedDataIsBounded(t *testing.T) {
	for _, beyond := range [][]byte{{0}, zeroFrame(frameMessage, 1)} {
		boundDiscards(t, beyond)
	}
}

func boundDiscards(t *testing.T, beyond []byte) {
	t.Helper()
	server, client := pair(SessionConfig{})
	broken := []byte{8, 0}
	garbled := []byte{8, 1, byte(fieldMessages)<<3 | 2, 1, 0xff}
	for round := 1; round <= 2; round++ {
		for range DefaultInboxPerSession + 5 {
			server.ReceiveDatagram(0, broken)
		}
		if as := server.arrivals(); len(as) != 1 || as[0].Value != DefaultInboxPerSession {
			t.Fatalf("arrivals %+v", as)
		}
		if n := server.stats.Dropped(DropInboxSession); n != uint64(round*5) {
			t.Error(n, "beyond the bound")
		}
	}
	for range DefaultInboxPerSession {
		server.ReceiveDatagram(0, broken)
	}
	server.ReceiveDatagram(0, garbled)
	if n := server.stats.Dropped(DropMessage); n != 1 || len(server.arrivals()) != 1 {
		t.Fatal(n, "malformed messages counted")
	}
	if _, closing := server.Cause(); closing {
		t.Fatal("datagrams, which the network may double, ended the session")
	}
	for range DefaultInboxPerSession {
		if err := server.ReceiveStream(0, []byte{0}); err != nil {
			t.Fatal(err)
		}
	}
	if _, closing := server.Cause(); closing {
		t.Fatal("closed within the bound")
	}
	if err := server.ReceiveStream(0, beyond); err != nil {
		t.Fatal(err)
	}
	carry(t, server, client, 0)
	if as := client.arrivals(); len(as) != 1 || as[0].Closed == nil || as[0].Closed.Code != CodeFlood {
		t.Errorf("the client got %+v", as)
	}
	if as := server.arrivals(); len(as) != 1 || as[0].Value != DefaultInboxPerSession {
		t.Errorf("arrivals %+v", as)
	}
}

// Datagrams without new contents, such as signs of life that the network delivers at once, cost
// only their share of the limits of datagrams.
func TestSignsOfLifeAreNoMessages(t *testing.T) {
	server, _ := pair(SessionConfig{})
	for number := range uint64(100) {
		server.ReceiveDatagram(0, appendNumber(nil, 1+number/2))
	}
	if as := server.arrivals(); len(as) != 0 || server.stats.Dropped(DropDuplicate) != 50 {
		t.Errorf("arrivals %+v, %d duplicates", as, server.stats.Dropped(DropDuplicate))
	}
}

// A message without room in the inbox is not decoded: it is charged first.
func TestMessagesArePaidBeforeTheyAreDecoded(t *testing.T) {
	calls := 0
	server := newEnd(false, undecodable(&calls))
	m := Message{Method: 1, Payload: make([]byte, 10)}
	frame := appendMessageFrame(nil, &m, sizeMessage(&m))
	for range DefaultInboxPerSession / 2 { // Each takes two places: one is for the discard.
		if err := server.ReceiveStream(0, frame); err != nil {
			t.Fatal(err)
		}
	}
	if _, closing := server.Cause(); closing || calls != DefaultInboxPerSession/2 {
		t.Fatal(calls, "decoded")
	}
	if err := server.ReceiveStream(0, frame); err != nil {
		t.Fatal(err)
	}
	if c, closing := server.Cause(); !closing || c.Code != CodeFlood || calls != DefaultInboxPerSession/2 {
		t.Error(calls, "decoded;", c)
	}
}

// After the end of a session no discard is counted for it.
func TestNothingIsDiscardedAfterTheEnd(t *testing.T) {
	server, _ := pair(SessionConfig{})
	server.End(Closed{Code: CodeLost})
	server.arrivals()
	if server.inbox.discard(server.Session, 0, 1) || len(server.arrivals()) != 0 || server.stats.Dropped(DropInboxGone) != 1 {
		t.Error("it arrived")
	}
}
