package nats

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/cluster"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// receiver is a member without a connection: it handles messages, and sends none.
type receiver struct {
	peers peers
	now   time.Duration
}

func newReceiver() *receiver {
	return &receiver{peers: peers{beat: cluster.Beat, all: map[string]*peer{}}, now: time.Hour}
}

// take handles a message of a kind as the subscriptions of a Cluster do. The subject is of server
// a, b, s0 or s1 and so on.
func (r *receiver) take(kind byte, subject string, data []byte) (err error) {
	r.now += time.Millisecond
	switch kind % 4 {
	case 0:
		var l *clusterv1.Lease
		if l, err = decodeLease(subject, data); err == nil {
			r.peers.beatOf(l, r.now)
		}
	case 1:
		var c *clusterv1.Changes
		if c, err = decodeChanges(subject, data); err == nil {
			r.peers.changes(c, r.now)
		}
	case 2:
		var d *clusterv1.Direct
		if d, err = decodeDirect(data); err == nil {
			r.peers.partOf(d.GetFrom(), d.GetPart())
		}
	case 3:
		_, err = decodeName(data)
	}
	return err
}

func leaseMessage(id string, count uint64, board uint64) []byte {
	return encode(&clusterv1.Lease{Id: id, Term: 1, Count: count, Uptime: int64(count) * int64(cluster.Beat), Board: board, Server: &clusterv1.Server{Region: "eu"}})
}

func changesMessage(id string, from uint64, rooms ...*clusterv1.Room) []byte {
	return encode(&clusterv1.Changes{Id: id, From: from, To: from + 1, Rooms: rooms})
}

// A sequence of any messages ends in a state within the limits, and never in a panic.
func FuzzMessages(f *testing.F) {
	join := func(messages ...[]byte) (all []byte) {
		for _, m := range messages {
			all = append(append(all, m[0], byte(len(m)-1)), m[1:]...)
		}
		return all
	}
	kind := func(k byte, data []byte) []byte { return append([]byte{k}, data...) }
	oak := &clusterv1.Room{Name: "oak", Entry: []byte("1")}
	part := encode(&clusterv1.Direct{From: "a", Content: &clusterv1.Direct_Part{Part: &clusterv1.Part{Version: 5, Last: true, Rooms: []*clusterv1.Room{oak}}}})
	f.Add(join(kind(0, leaseMessage("a", 1, 0)), kind(1, changesMessage("a", 0, oak)), kind(1, changesMessage("a", 7, oak)), kind(2, part), kind(1, changesMessage("a", 5, &clusterv1.Room{Name: "oak", Removed: true}))))
	f.Add(join(kind(4, encode(&clusterv1.Lease{Id: "b", Term: 1 << 63, Count: 1 << 63, Uptime: -1 << 63, Server: serverMessage(cluster.Server{Addresses: []cluster.Address{{Carrier: "quic", Hashes: [][]byte{make([]byte, 32)}}}}, cluster.Load{})}))))
	f.Add(join(kind(2, encode(&clusterv1.Direct{From: "a", Content: &clusterv1.Direct_Call{Call: &clusterv1.Call{Id: "1", Method: "m", Until: -1, Timeout: 1}}})), kind(2, encode(&clusterv1.Direct{From: "a", Content: &clusterv1.Direct_Answer{Answer: &clusterv1.Answer{Id: "1", Error: 9}}}))))
	f.Add(join(kind(3, encode(&clusterv1.Name{Name: "room/a", Holder: "a", Term: 1, Epoch: 1, Nonce: 7}))))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newReceiver()
		for len(data) >= 2 {
			n := min(int(data[1]), len(data)-2)
			_ = r.take(data[0], string(rune('a'+data[0]/4%2)), data[2:2+n])
			data = data[2+n:]
		}
		for id, v := range r.peers.all {
			if v.listed && v.server.Check() != nil || v.listed && v.server.ID != id || len(v.board.rooms) > cluster.MaxRooms || len(v.later) > maxLater {
				t.Fatalf("%q: %+v", id, v)
			}
			bytes := 0
			for i, room := range v.board.rooms {
				bytes += len(room.Name) + len(room.Entry)
				if i > 0 && v.board.rooms[i-1].Name >= room.Name || cluster.CheckName(room.Name) != nil {
					t.Fatalf("the board of %q: %+v", id, v.board.rooms)
				}
			}
			if bytes != v.board.bytes {
				t.Fatalf("the board of %q has %d bytes, counted %d", id, bytes, v.board.bytes)
			}
		}
	})
}

// Messages beyond the limits are refused before anything is stored.
func TestMessagesBeyondTheLimits(t *testing.T) {
	long := strings.Repeat("x", cluster.MaxName+1)
	direct := func(d *clusterv1.Direct) []byte { d.From = "a"; return encode(d) }
	call := func(c *clusterv1.Call) []byte {
		return direct(&clusterv1.Direct{Content: &clusterv1.Direct_Call{Call: c}})
	}
	for name, m := range map[string]struct {
		kind byte
		data []byte
	}{
		"no protobuf":            {0, []byte("hello")},
		"no id":                  {0, leaseMessage("", 1, 0)},
		"another server's id":    {0, leaseMessage("b", 1, 0)},
		"another server's board": {1, changesMessage("b", 0)},
		"a long region":          {0, encode(&clusterv1.Lease{Id: "a", Server: &clusterv1.Server{Region: long}})},
		"many addresses":         {0, encode(&clusterv1.Lease{Id: "a", Server: &clusterv1.Server{Addresses: make([]*clusterv1.Address, 9)}})},
		"a short hash":           {0, encode(&clusterv1.Lease{Id: "a", Server: &clusterv1.Server{Addresses: []*clusterv1.Address{{Hashes: [][]byte{{1}}}}}})},
		"a long room":            {1, changesMessage("a", 0, &clusterv1.Room{Name: long})},
		"a large entry":          {1, changesMessage("a", 0, &clusterv1.Room{Name: "a", Entry: make([]byte, cluster.MaxEntry+1)})},
		"many rooms":             {1, changesMessage("a", 0, make([]*clusterv1.Room, maxPart+1)...)},
		"changes without one":    {1, encode(&clusterv1.Changes{Id: "a", From: 2, To: 2})},
		"a large message":        {1, make([]byte, maxMessage+1)},
		"a sender":               {2, encode(&clusterv1.Direct{From: ">"})},
		"a long method":          {2, call(&clusterv1.Call{Method: long})},
		"a large call":           {2, call(&clusterv1.Call{Body: make([]byte, cluster.MaxBody+1)})},
		"a long call":            {2, call(&clusterv1.Call{Timeout: int64(cluster.MaxCallTime) + 1})},
		"a large answer":         {2, direct(&clusterv1.Direct{Content: &clusterv1.Direct_Answer{Answer: &clusterv1.Answer{Body: make([]byte, cluster.MaxBody+1)}}})},
		"a long part":            {2, direct(&clusterv1.Direct{Content: &clusterv1.Direct_Part{Part: &clusterv1.Part{Rooms: []*clusterv1.Room{{Name: long}}}}})},
		"a name without one":     {3, encode(&clusterv1.Name{Holder: "a"})},
		"a holder":               {3, encode(&clusterv1.Name{Name: "a", Holder: "*"})},
		"an epoch":               {3, encode(&clusterv1.Name{Name: "a", Epoch: 1 << 63})},
	} {
		if r := newReceiver(); r.take(m.kind, "a", m.data) == nil || len(r.peers.all) > 0 {
			t.Errorf("%s was accepted", name)
		}
	}
	r := newReceiver()
	for i := range cluster.MaxServers + 10 {
		if err := r.take(0, fmt.Sprint("s", i), leaseMessage(fmt.Sprint("s", i), 1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(r.peers.all); n != cluster.MaxServers {
		t.Errorf("%d servers are listed", n)
	}
}

func TestServersAndErrorsSurviveTheWay(t *testing.T) {
	s := cluster.Server{
		ID: "a", Region: "eu", Zone: "z", Schema: "s",
		Addresses: []cluster.Address{{Carrier: "quic", Addr: "a:1", Name: "n", Hashes: [][]byte{bytes.Repeat([]byte{1}, 32)}}},
		Load:      cluster.Load{Rooms: 1, MaxRooms: 2, Clients: 3, MaxClients: 4, Overload: 5, Draining: true},
	}
	l, err := decodeLease("a", encode(&clusterv1.Lease{Id: "a", Server: serverMessage(s, s.Load)}))
	if err != nil || !reflect.DeepEqual(serverOf(l), s) {
		t.Errorf("%+v, %v", serverOf(l), err)
	}
	for _, want := range []error{nil, cluster.ErrBusy, cluster.ErrTaken, cluster.ErrGone, errors.New("text")} {
		got := errorOf(answerOf("1", nil, want))
		if fmt.Sprint(got) != fmt.Sprint(want) || want != nil && want.Error() != "text" && !errors.Is(got, want) {
			t.Errorf("%v became %v", want, got)
		}
	}
}
