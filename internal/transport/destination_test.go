package transport

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// fullDestination has every field at its limit.
func fullDestination() (to Destination) {
	for range MaxAddresses {
		a := Address{Carrier: "quic", Addr: strings.Repeat("a", maxAddress), Name: strings.Repeat("n", maxAddress)}
		for range maxHashes {
			a.Hashes = append(a.Hashes, bytes.Repeat([]byte{7}, 32))
		}
		to = append(to, a)
	}
	return to
}

// A client is told the other server, over a session that continues, and may then close it with
// CodeMoved.
func TestAClientIsSentToAnotherServer(t *testing.T) {
	server, client := pair(SessionConfig{Travels: true})
	want := MovedTo{Ticket: "a@box", To: fullDestination()}
	if !server.Travel(want) {
		t.Fatal("not sent")
	}
	server.Send(Message{Method: 1, Reliable: true})
	server.Flush(0)
	carry(t, server, client, 1)
	as := client.arrivals()
	if k := kinds(as); len(k) != 2 || k[0] != MoveTold || k[1] != MessageArrived {
		t.Fatalf("the client was told %v", k)
	}
	if got, _ := as[0].Decoded.(Destination); as[0].Message.Text != want.Ticket || !reflect.DeepEqual(got, want.To) {
		t.Errorf("sent to %v by %q", got, as[0].Message.Text)
	}
	client.Session.Close(CodeMoved, "")
	carry(t, client, server, 2)
	if as := server.arrivals(); len(as) != 1 || as[0].Closed.Code != CodeMoved {
		t.Errorf("the server was told %+v", as)
	}
}

// A client that closes with CodeMoved on its own has left.
func TestAClientCannotMoveUntold(t *testing.T) {
	for _, told := range []bool{false, true} {
		server, client := pair(SessionConfig{})
		if told {
			server.LetTravel()
		}
		client.Session.Close(CodeMoved, "")
		carry(t, client, server, 2)
		if as := server.arrivals(); len(as) != 1 || (as[0].Closed.Code == CodeMoved) != told || !told && as[0].Closed.Code != CodeLeft {
			t.Errorf("told %v: the server was told %+v", told, as)
		}
	}
}

// No destination beyond the limits is sent, or taken.
func TestLimitsOfDestinations(t *testing.T) {
	good := func(change func(*MovedTo)) MovedTo {
		m := MovedTo{Ticket: "a@box", To: fullDestination()}
		change(&m)
		return m
	}
	for name, m := range map[string]MovedTo{
		"no address":      good(func(m *MovedTo) { m.To = Destination{} }),
		"too many":        good(func(m *MovedTo) { m.To = append(m.To, m.To[0]) }),
		"no carrier":      good(func(m *MovedTo) { m.To[0].Carrier = "" }),
		"no host":         good(func(m *MovedTo) { m.To[0].Addr = "" }),
		"a long name":     good(func(m *MovedTo) { m.To[7].Name += "n" }),
		"a long host":     good(func(m *MovedTo) { m.To[7].Addr += "n" }),
		"a short hash":    good(func(m *MovedTo) { m.To[7].Hashes[3] = []byte{1} }),
		"too many hashes": good(func(m *MovedTo) { m.To[0].Hashes = append(m.To[0].Hashes, m.To[0].Hashes[0]) }),
		"no ticket":       good(func(m *MovedTo) { m.Ticket = "" }),
		"a long ticket":   good(func(m *MovedTo) { m.Ticket = strings.Repeat("t", maxTicketText+1) }),
	} {
		server, client := pair(SessionConfig{Travels: true})
		if server.Travel(m) {
			t.Errorf("%s: sent", name)
		}
		frame, err := AppendFrame(nil, &netloopv1.Frame{Kind: &netloopv1.Frame_Moved{Moved: m.message()}})
		if err != nil {
			t.Fatal(err)
		}
		var broken *Closed
		if err := client.ReceiveStream(0, frame); !errors.As(err, &broken) || broken.Code != CodeProtocol {
			t.Errorf("%s: taken: %v", name, err)
		}
		if movedTo(m.message()) != nil {
			t.Errorf("%s: taken from a refusal", name)
		}
		refusal, _, _ := CutFrame(AppendRefused(nil, &Refusal{Code: CodeMoved, Text: "x", Moved: &m}), MaxHandshake)
		if f, err := decodeFrame(refusal); err != nil || f.GetRefused().GetMoved() != nil {
			t.Errorf("%s: sent in a refusal", name)
		}
	}
	server, _ := pair(SessionConfig{})
	if server.Travel(good(func(*MovedTo) {})) {
		t.Error("a client that cannot move to another server was sent there")
	}
	server, _ = pair(SessionConfig{Travels: true})
	server.Session.Close(CodeKicked, "")
	if server.Travel(good(func(*MovedTo) {})) {
		t.Error("a closed client was sent to another server")
	}
}

// A refusal names the other server only with its code.
func TestARefusalNamesTheOtherServer(t *testing.T) {
	m := MovedTo{Ticket: "a@box", To: fullDestination()}
	for code, named := range map[Code]bool{CodeMoved: true, CodeFull: false} {
		frame, _, _ := CutFrame(AppendRefused(nil, &Refusal{Code: code, Text: "x", Moved: &m}), MaxHandshake)
		var r *Refusal
		if _, _, err := new(Greeting).Take(frame); !errors.As(err, &r) || (r.Moved != nil) != named || named && !reflect.DeepEqual(*r.Moved, m) {
			t.Errorf("%v: %+v", code, r)
		}
	}
}
