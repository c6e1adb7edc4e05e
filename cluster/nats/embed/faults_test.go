//go:build unix

package embed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/cluster/nats"
)

// member joins a cluster with an id.
func member(t *testing.T, url, id string) cluster.Cluster {
	t.Helper()
	c, err := nats.New(nats.Config{URL: url, Beat: beat})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Join(within(t, 30*time.Second), cluster.Member{Server: cluster.Server{ID: id}}); err != nil {
		t.Fatalf("Join of %s: %v: %s", id, err, c.Health().Text)
	}
	t.Cleanup(func() { _ = c.Close(within(t, time.Second)) })
	return c
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits for a condition, and returns the time that it took.
func eventually(t *testing.T, limit time.Duration, what string, is func() bool) time.Duration {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(beat / 10) {
		if is() {
			return time.Since(begin)
		}
		if time.Since(begin) > limit {
			t.Fatalf("after %v: not %s", limit, what)
		}
	}
}

// lists reports whether a member lists the room oak of another one that is not suspect.
func lists(c cluster.Cluster, id string) bool {
	for _, b := range c.Boards() {
		if b.Server == id && !b.Suspect && len(b.Rooms) == 1 && b.Rooms[0].Name == "oak" {
			return true
		}
	}
	return false
}

func isSuspect(c cluster.Cluster, id string) bool {
	for _, s := range c.Servers() {
		if s.ID == id {
			return s.Suspect
		}
	}
	return false
}

// claims reports whether a member gets a name within a second.
func claims(t *testing.T, c cluster.Cluster, name string) bool {
	_, err := c.Claim(within(t, time.Second), name, 0)
	return err == nil
}

// A process that is stopped and continued returns by its next heartbeat: it is listed again, keeps
// the names that nobody has claimed, knows the one that it has lost, and runs no call that is
// late.
func TestAFrozenProcessReturns(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := startProcess(t, memberVariable, s.URL())
	c := member(t, s.URL(), "observer")
	call := func(method, body string) (string, error) {
		answer, err := c.Call(within(t, 5*time.Second), cluster.Call{To: "process", Method: method, Body: []byte(body), Timeout: 3 * time.Second})
		return string(answer), err
	}
	eventually(t, 3*time.Second, "listed", func() bool { return lists(c, "process") })
	if got, err := call("create", ""); got != "1" || err != nil {
		t.Fatalf("create: %q, %v", got, err)
	}
	p.signal(syscall.SIGSTOP)
	eventually(t, 3*time.Second, "stopped", func() bool { // Its threads run on for a moment.
		_, err := c.Call(within(t, 5*time.Second), cluster.Call{To: "process", Method: "count", Timeout: beat})
		return errors.Is(err, cluster.ErrBusy)
	})
	var stalled sync.WaitGroup
	for range 1000 {
		stalled.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if _, err := c.Call(ctx, cluster.Call{To: "process", Method: "create", Timeout: 2 * beat}); !errors.Is(err, cluster.ErrBusy) {
				t.Errorf("a stalled create: %v", err)
			}
		})
	}
	stalled.Wait()
	eventually(t, 5*beat, "suspect", func() bool { return isSuspect(c, "process") })
	eventually(t, 20*beat, "free", func() bool { return claims(t, c, "held") })
	p.signal(syscall.SIGCONT)
	took := eventually(t, 2*time.Second, "listed again", func() bool { return lists(c, "process") })
	t.Logf("listed after %v", took)
	eventually(t, 3*time.Second, "the process knows its loss", func() bool { _, err := call("hold", "held"); return errors.Is(err, cluster.ErrTaken) })
	eventually(t, 3*time.Second, "the process holds its other name", func() bool { _, err := call("hold", "kept"); return err == nil })
	if got, err := call("count", ""); got != "1" || err != nil {
		t.Errorf("late calls created %q rooms, %v", got, err)
	}
	if claims(t, c, "kept") {
		t.Error("a held name was claimed")
	}
	p.kill()
	eventually(t, 5*beat, "a killed process is suspect", func() bool { return isSuspect(c, "process") })
	eventually(t, 20*beat, "its names are free", func() bool { return claims(t, c, "kept") })
}

// A connection that remains open and passes no byte is noticed, and made again for as long as that
// lasts. Meanwhile calls and claims end with their contexts: the NATS client itself waits for each
// of its attempts.
func TestCallsEndInTimeDuringAStall(t *testing.T) {
	t.Parallel()
	b := newBed(t, start(t).URL())
	c := b.join("stalled")
	b.join("other")
	eventually(t, 5*time.Second, "the members know each other", func() bool { return len(c.Servers()) == 2 })
	b.Freeze(c, true)
	defer b.Freeze(c, false)
	eventually(t, 30*time.Second, "the stall is noticed", func() bool { return strings.Contains(c.Health().Text, "not connected") })
	for range 8 { // More than one attempt to connect.
		for what, ask := range map[string]func(context.Context) error{
			"Call":  func(ctx context.Context) error { _, err := c.Call(ctx, cluster.Call{To: "other"}); return err },
			"Claim": func(ctx context.Context) error { _, err := c.Claim(ctx, "oak", 0); return err },
			"Find":  func(ctx context.Context) error { _, err := c.Find(ctx, "oak"); return err },
		} {
			began := time.Now()
			if err := ask(within(t, 100*time.Millisecond)); !errors.Is(err, cluster.ErrBusy) {
				t.Errorf("%s: %v", what, err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("%s with a context of 100 ms took %v", what, took)
			}
		}
	}
}

// A member without news lists the others as suspect, and takes none of their names, however long it
// does not hear them. Its calls work. The connection is made again by itself.
func TestAMemberWithoutNewsTakesNoNames(t *testing.T) {
	t.Parallel()
	b := newBed(t, start(t).URL())
	c, other := b.join("deaf"), b.join("other")
	other.Serve(func(context.Context, cluster.Request) ([]byte, error) { return []byte("yes"), nil })
	other.Announce("oak", []byte("1"))
	if !claims(t, other, "oak") {
		t.Fatal("the other member does not get its name")
	}
	eventually(t, 5*time.Second, "listed", func() bool { return lists(c, "other") })
	b.pipes[c].holdNewest()
	eventually(t, 10*beat, "suspect", func() bool { return isSuspect(c, "other") })
	began := time.Now()
	for reconnected := false; time.Since(began) < 2*cluster.LeaseBeats*beat && !reconnected; reconnected = !isSuspect(c, "other") {
		if _, err := c.Claim(within(t, time.Second), "oak", 0); !errors.Is(err, cluster.ErrTaken) {
			t.Fatalf("a claim of a held name: %v", err)
		}
		if answer, err := c.Call(within(t, time.Second), cluster.Call{To: "other"}); string(answer) != "yes" || err != nil {
			t.Fatalf("a call: %q, %v", answer, err)
		}
	}
	eventually(t, 30*time.Second, "listed again", func() bool { return lists(c, "other") && c.Health().OK })
}

// natsCluster is three NATS servers as processes, with a proxy for each route.
type natsCluster struct {
	t       *testing.T
	configs [3]natsConfig
	servers [3]*process
	routes  [3][3]*proxy // from, to
}

func startCluster(t *testing.T) *natsCluster {
	n := &natsCluster{t: t}
	for i := range n.configs {
		c := &n.configs[i]
		c.Dir, c.Name, c.Listen, c.RoutesListen, c.Advertise = t.TempDir(), fmt.Sprint("n", i), freePort(t), freePort(t), "127.0.0.1:9"
	}
	for from := range n.configs {
		for to := range n.configs {
			if from != to {
				n.routes[from][to] = newProxy(t, n.configs[to].RoutesListen)
				n.configs[from].Routes = append(n.configs[from].Routes, n.routes[from][to].addr())
			}
		}
	}
	var group sync.WaitGroup
	for i := range n.servers {
		group.Go(func() { n.start(i) })
	}
	group.Wait()
	return n
}

func (n *natsCluster) start(i int) {
	config, err := json.Marshal(n.configs[i])
	if err != nil {
		n.t.Fatal(err)
	}
	n.servers[i] = startProcess(n.t, natsVariable, string(config))
}

func (n *natsCluster) url(i int) string { return "nats://" + n.configs[i].Listen }

// isolate cuts the routes of a server, or connects them again.
func (n *natsCluster) isolate(i int, off bool) {
	for other := range n.routes {
		if other != i {
			n.routes[i][other].cut(off)
			n.routes[other][i].cut(off)
		}
	}
}

func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// With three NATS servers, names survive the loss of one. With one left, boards and calls work,
// and names are refused as busy. All returns by itself. In a partition the members of the smaller
// side claim nothing, and learn afterwards which names they have lost.
func TestNATSServersFail(t *testing.T) {
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("make verify runs it: elections of NATS take many seconds")
	}
	n := startCluster(t)
	var members [4]cluster.Cluster
	id := func(i int) string { return "m" + strconv.Itoa(i) }
	for i := range members {
		urls := n.url(1) + "," + n.url(2)
		if i == 0 {
			urls = n.url(0) // The member of the smaller side.
		}
		members[i] = member(t, urls, id(i))
		members[i].Serve(func(context.Context, cluster.Request) ([]byte, error) { return []byte("yes"), nil })
		members[i].Announce("oak", []byte("1"))
	}
	var epochs [4]cluster.Epoch
	all := func(limit time.Duration, what string, is func(i int) bool) {
		t.Helper()
		took := eventually(t, limit, what, func() bool {
			for i := range members {
				if !is(i) {
					return false
				}
			}
			return true
		})
		t.Logf("%s after %v", what, took.Round(time.Millisecond))
	}
	listed := func(i int) bool {
		for j := range members {
			if !lists(members[i], id(j)) {
				return false
			}
		}
		return true
	}
	answered := func(i int) bool {
		for j := range members {
			if _, err := members[i].Call(within(t, time.Second), cluster.Call{To: id(j), Timeout: time.Second}); err != nil {
				return false
			}
		}
		return true
	}
	held := func(i int) bool { return members[i].Hold("own/"+id(i), epochs[i]) == nil }
	works := func(what string) {
		t.Helper()
		all(30*time.Second, what+": the names are held", held)
		all(10*time.Second, what+": all rooms are listed", listed)
		all(10*time.Second, what+": calls are answered", answered)
		round := 0
		all(10*time.Second, what+": names can be claimed", func(i int) bool {
			round++
			return claims(t, members[i], fmt.Sprint(what, i, round))
		})
		for i := range members {
			if other := members[(i+1)%4]; claims(t, other, "own/"+id(i)) {
				t.Fatalf("%s: a held name was claimed", what)
			}
		}
	}
	for i := range members {
		var err error
		if epochs[i], err = members[i].Claim(within(t, 5*time.Second), "own/"+id(i), 0); err != nil {
			t.Fatal(err)
		}
	}
	works("at first")

	var newer cluster.Epoch
	var err error
	n.isolate(0, true)
	eventually(t, 30*time.Second, "the larger side claims the name of the smaller one", func() (ok bool) {
		newer, err = members[1].Claim(within(t, time.Second), "own/m0", 0)
		return err == nil
	})
	if err := members[0].Hold("own/m0", epochs[0]); !errors.Is(err, cluster.ErrBusy) {
		t.Errorf("Hold of the smaller side: %v", err)
	}
	if claims(t, members[0], "minority") {
		t.Error("the smaller side claims a name")
	}
	for _, b := range members[0].Boards() {
		if b.Server != "m0" && !b.Suspect {
			t.Errorf("the smaller side lists %s", b.Server)
		}
	}
	n.isolate(0, false)
	took := eventually(t, 30*time.Second, "the older holder knows its loss", func() bool { return errors.Is(members[0].Hold("own/m0", epochs[0]), cluster.ErrTaken) })
	t.Logf("the loss is known after %v", took)
	all(10*time.Second, "after the partition: all rooms are listed", listed)
	all(10*time.Second, "after the partition: calls are answered", answered)
	if epoch, err := members[0].Claim(within(t, 5*time.Second), "own/m0", 0); !errors.Is(err, cluster.ErrTaken) {
		t.Errorf("Claim of the lost name: %d, %v", epoch, err)
	}
	if err := members[1].Release(within(t, 5*time.Second), "own/m0", newer); err != nil {
		t.Error(err)
	}
	if epochs[0], err = members[0].Claim(within(t, 5*time.Second), "own/m0", 0); err != nil || epochs[0] <= newer {
		t.Errorf("Claim of the released name: epoch %d after %d, %v", epochs[0], newer, err)
	}
	works("after the partition")

	n.servers[1].kill()
	all(3*time.Second, "one killed: all rooms are listed", listed)
	all(3*time.Second, "one killed: calls are answered", answered)
	works("one killed")

	n.servers[2].kill()
	all(3*time.Second, "two killed: all rooms are listed", listed)
	all(3*time.Second, "two killed: calls are answered", answered)
	begin := time.Now()
	if _, err := members[3].Claim(within(t, time.Second), "none", 0); !errors.Is(err, cluster.ErrBusy) || time.Since(begin) > 2*time.Second {
		t.Errorf("Claim without a quorum: %v after %v", err, time.Since(begin))
	}
	all(5*time.Second, "two killed: Health says it", func(i int) bool { return strings.Contains(members[i].Health().Text, "store of NATS") })
	all(12*beat, "two killed: leases are not confirmed", func(i int) bool {
		return errors.Is(members[i].Hold("own/"+id(i), epochs[i]), cluster.ErrBusy)
	})
	n.start(1)
	n.start(2)
	works("two returned")
}
