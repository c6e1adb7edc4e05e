package netvar

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// worked is the example of doc.go: objects A, B and C, clients P and Q, and one lost packet.
type worked struct {
	schema
	w       *World
	objects []*state.Object
	clients [2]workedClient
}

type workedClient struct {
	p       *Peer
	r       *replica.Replica
	last    Range // packets that have arrived since the last tick
	arrived [][]byte
}

// The example in doc.go agrees, line by line, with the code.
func TestTheExampleInTheDocumentationIsTrue(t *testing.T) {
	x := worked{schema: newSchema(t)}
	x.w = NewWorld(x.table)
	for i := range x.clients {
		x.clients[i] = workedClient{p: x.w.NewPeer(1), r: replica.New(x.table)}
	}
	edit := func(slots ...int) {
		for _, slot := range slots {
			x.w.Edit(x.objects[slot])
			live[rock](x.objects[slot]).X += 7
		}
	}
	text := "tick  the game does  P has     to P             Q has     to Q                 encoded\n"
	for i, does := range []struct {
		what string
		do   func()
		lost bool // the packet to Q
	}{
		{"spawn A, B, C", func() {
			for range 3 {
				x.objects = append(x.objects, x.spawnRock(x.w, rock{}, 1))
			}
		}, false},
		{"edit B and C", func() { edit(1, 2) }, true},
		{"edit B", func() { edit(1) }, false},
		{"despawn A", func() { x.w.Despawn(x.objects[0]) }, false},
		{"", func() {}, false},
	} {
		text += x.tick(t, uint64(i+1), does.what, does.do, does.lost)
	}
	for i, c := range x.clients {
		for slot, o := range x.objects {
			if got, ok := c.r.Get(o.ID()); ok != o.Alive() || ok && *live[rock](got) != *live[rock](o) {
				t.Errorf("client %d has object %d: %v, and the server: %v", i, slot, ok, o.Alive())
			}
		}
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if !strings.Contains(string(doc), "\n//\t"+strings.TrimRight(line, " \n")+"\n") {
			t.Errorf("doc.go does not have the line\n%s", line)
		}
	}
	if t.Failed() {
		t.Logf("the example is\n%s", text)
	}
}

// tick plays a tick and returns its line.
func (x *worked) tick(t *testing.T, tick uint64, what string, do func(), lost bool) string {
	for i := range x.clients {
		if c := &x.clients[i]; c.last.First > 0 {
			c.p.Ack([]Range{c.last})
			c.last = Range{}
		}
	}
	do()
	has := [2]string{x.has(x.clients[0].p), x.has(x.clients[1].p)}
	encoded := x.w.stats.Encoded
	x.w.Capture(tick)
	var sent [2]string
	for i := range x.clients {
		sent[i] = x.clients[i].snapshot(t, tick, lost && i == 1)
	}
	return fmt.Sprintf("%4d  %-13s  %-8s  %-16s  %-8s  %-19s  %7d\n", tick, what, has[0], sent[0], has[1], sent[1], x.w.stats.Encoded-encoded)
}

// has returns the versions that the server knows a client to have.
func (x *worked) has(p *Peer) string {
	var all []string
	for slot := range p.entries {
		if e := p.peek(slot); e.phase == shown && e.base > 0 {
			all = append(all, fmt.Sprintf("%c%d", 'A'+slot, e.base))
		}
	}
	return strings.Join(all, " ")
}

// snapshot cuts the snapshot for a client, which is one packet, and returns its content as text. A
// second replica with the same packets decodes it, so that a lost packet can be decoded too.
func (c *workedClient) snapshot(t *testing.T, tick uint64, lost bool) string {
	packets, id := snap(c.p, tick, wide)
	if len(packets) != 1 {
		t.Fatalf("tick %d: %d packets", tick, len(packets))
	}
	reader := replica.New(c.r.Table())
	mustApply(t, reader, nil, c.arrived...)
	applied, err := reader.Apply(packets[0])
	if err != nil {
		t.Fatal(err)
	}
	text, from := "", ""
	for s := range reader.Records {
		switch s.Kind {
		case packet.Despawn:
			text += fmt.Sprintf("%c ended ", 'A'+s.Slot)
		case packet.Full:
			text += fmt.Sprintf("%c%d ", 'A'+s.Slot, s.Version)
			from = "in full"
		case packet.Delta:
			text += fmt.Sprintf("%c%d ", 'A'+s.Slot, s.Version)
			from = fmt.Sprintf("as of %d", applied.AsOf)
		}
	}
	if text == "" {
		text = "no record"
	}
	if text = strings.TrimSpace(text + from); lost {
		return text + ", lost"
	}
	mustApply(t, c.r, nil, packets...)
	c.arrived = append(c.arrived, packets...)
	c.last = Range{id, id}
	return text
}
