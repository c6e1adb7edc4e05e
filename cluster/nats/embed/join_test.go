//go:build unix

package embed_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/cluster/nats"
	"github.com/netloop/netloop/cluster/nats/embed"
)

// A server that starts without NATS joins later by itself, and ends without a goroutine.
func TestJoinWithoutNATS(t *testing.T) {
	url := natsProcess(t).said // Its goroutines are not those of this process.
	p := newProxy(t, url)
	p.cut(true)
	running := goleak.IgnoreCurrent()
	c, err := nats.New(nats.Config{URL: "nats://" + p.addr(), Name: "late", Beat: beat})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Join(within(t, beat), cluster.Member{Server: cluster.Server{ID: "a"}}); !errors.Is(err, cluster.ErrBusy) {
		t.Errorf("Join: %v", err)
	}
	if h := c.Health(); h.OK || !strings.HasPrefix(h.Text, "NATS is not connected") {
		t.Errorf("Health: %+v", h)
	}
	p.cut(false)
	eventually(t, 5*time.Second, "joined", func() bool { return c.Health().OK })
	if err := c.Join(within(t, beat), cluster.Member{Server: cluster.Server{ID: "b"}}); !errors.Is(err, cluster.ErrTaken) {
		t.Errorf("a second Join: %v", err)
	}
	other, err := nats.New(nats.Config{URL: url, Name: "late", Beat: beat})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Join(within(t, 5*time.Second), cluster.Member{Server: cluster.Server{ID: "a"}}); !errors.Is(err, cluster.ErrTaken) {
		t.Errorf("Join with the id of another server: %v", err)
	}
	for _, c := range []cluster.Cluster{other, c} {
		if err := c.Close(within(t, 5*time.Second)); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	p.cut(true)
	goleak.VerifyNone(t, running)
}

// A stream of another program is not used, and Health names it.
func TestAForeignStream(t *testing.T) {
	s := start(t)
	n, err := natsgo.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	js, err := jetstream.New(n)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "NETLOOP_foreign", Subjects: []string{"netloop.foreign.lease.*"}}); err != nil {
		t.Fatal(err)
	}
	c, err := nats.New(nats.Config{URL: s.URL(), Name: "foreign", Beat: beat})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Join(within(t, 2*beat), cluster.Member{Server: cluster.Server{ID: "a"}}); !errors.Is(err, cluster.ErrBusy) {
		t.Errorf("Join: %v", err)
	}
	defer c.Close(within(t, time.Second))
	if h := c.Health(); h.OK || !strings.Contains(h.Text, "NETLOOP_foreign is not one of netloop") {
		t.Errorf("Health: %+v", h)
	}
}

// Wrong configurations are errors that name the field.
func TestConfigurations(t *testing.T) {
	for field, cfg := range map[string]nats.Config{
		"Config.URL": {}, "Config.Name": {URL: "x", Name: "a.b"}, "Config.Beat": {URL: "x", Beat: time.Minute}, "Config.Replicas": {URL: "x", Replicas: 2},
		"Config.NKey": {URL: "x", NKey: "a", Credentials: "b"},
	} {
		if _, err := nats.New(cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for field, cfg := range map[string]embed.Config{"Config.Dir": {}, "Config.Listen": {Dir: t.TempDir(), Listen: "nowhere"}} {
		if _, err := embed.Start(cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
