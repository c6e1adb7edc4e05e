package clustertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/netloop/netloop/cluster"
)

// serving joins a server with a handler.
func (s *scene) serving(h cluster.Handler) (cluster.Cluster, string) {
	s.Helper()
	c := s.New()
	c.Serve(h)
	return c, s.joinAs(c, cluster.Member{})
}

// listed waits until a server lists another one.
func (s *scene) listed(by cluster.Cluster, id string) {
	s.Helper()
	s.eventually(3, "listed", func() bool { _, ok := server(by, id); return ok })
}

// Calls are answered, by errors of the cluster as themselves and other ones as texts.
func calls(s *scene) {
	a, idA := s.join(cluster.Member{})
	b, idB := s.serving(func(ctx context.Context, r cluster.Request) ([]byte, error) {
		switch r.Method {
		case "echo":
			return append([]byte(r.From+" "), r.Body...), nil
		case "taken":
			return nil, fmt.Errorf("because: %w", cluster.ErrTaken)
		case "text":
			return nil, errors.New("no such map" + strings.Repeat("!", cluster.MaxText))
		case "large":
			return make([]byte, cluster.MaxBody+1), nil
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	s.listed(a, idB)
	call := func(by cluster.Cluster, method string) (string, error) {
		body, err := by.Call(s.within(25), cluster.Call{To: idB, Method: method, Body: []byte("hi"), Timeout: s.beats(20)})
		return string(body), err
	}
	if got, err := call(a, "echo"); got != idA+" hi" || err != nil {
		s.Errorf("answer %q, %v", got, err)
	}
	if got, err := call(b, "echo"); got != idB+" hi" || err != nil {
		s.Errorf("answer of itself %q, %v", got, err)
	}
	_, err := call(a, "taken")
	s.want("Call", err, cluster.ErrTaken)
	if _, err := call(a, "text"); err == nil || !strings.HasPrefix(err.Error(), "no such map!") || len(err.Error()) != cluster.MaxText {
		s.Errorf("error %v", err)
	}
	if _, err := call(a, "large"); err == nil || errors.Is(err, cluster.ErrBusy) {
		s.Errorf("an answer beyond the limit: %v", err)
	}
	whole := cluster.Call{To: idB, Method: "echo", Body: make([]byte, cluster.MaxBody-100), Timeout: s.beats(20)}
	if got, err := a.Call(s.within(25), whole); err != nil || !bytes.HasSuffix(got, whole.Body) {
		s.Errorf("a large answer: %d bytes, %v", len(got), err)
	}
	_, err = a.Call(s.within(25), cluster.Call{To: idB, Method: "hangs", Timeout: s.beats(1)})
	s.want("Call of a handler that hangs", err, cluster.ErrBusy)
	_, err = a.Call(s.within(1), cluster.Call{To: "unknown"})
	s.want("Call of an unknown server", err, cluster.ErrGone)
	s.listed(b, idA)
	_, err = b.Call(s.within(25), cluster.Call{To: idA, Timeout: s.beats(20)})
	s.want("Call of a server without a handler", err, cluster.ErrBusy)
	for _, bad := range []cluster.Call{
		{To: idB, Body: make([]byte, cluster.MaxBody+1)}, {To: idB, Timeout: cluster.MaxCallTime + 1}, {To: idB, Timeout: -1},
		{To: idB, Method: strings.Repeat("x", cluster.MaxText+1)}, {To: idB, ID: strings.Repeat("x", cluster.MaxText+1)},
	} {
		if _, err := a.Call(s.within(25), bad); err == nil || errors.Is(err, cluster.ErrBusy) {
			s.Errorf("a call beyond the limits: %v", err)
		}
	}
}

// A repeated call has the same answer, and runs once.
func repeatedCalls(s *scene) {
	var runs atomic.Int32
	a, _ := s.join(cluster.Member{})
	_, idB := s.serving(func(ctx context.Context, r cluster.Request) ([]byte, error) {
		n := runs.Add(1)
		s.Pass(s.Beat() / 10)
		return fmt.Append(nil, n), nil
	})
	s.listed(a, idB)
	ctx := s.within(25)
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			if got, err := a.Call(ctx, cluster.Call{To: idB, ID: "one", Timeout: s.beats(20)}); err != nil || string(got) != "1" {
				s.Errorf("answer %q, %v", got, err)
			}
		})
	}
	group.Wait()
	if got, err := a.Call(ctx, cluster.Call{To: idB, ID: "one", Timeout: s.beats(20)}); err != nil || string(got) != "1" {
		s.Errorf("a later answer %q, %v", got, err)
	}
	if got, err := a.Call(ctx, cluster.Call{To: idB, Timeout: s.beats(20)}); err != nil || string(got) != "2" {
		s.Errorf("the answer of another call %q, %v", got, err)
	}
}

// A server that was frozen drops expired calls: a create that timed out never
// happens later.
func lateCalls(s *scene) {
	var created atomic.Int32
	a, _ := s.join(cluster.Member{})
	b, idB := s.serving(func(context.Context, cluster.Request) ([]byte, error) {
		created.Add(1)
		return nil, nil
	})
	s.listed(a, idB)
	s.Pass(s.beats(2))
	s.Freeze(b, true)
	const stalled = 1000
	var group sync.WaitGroup
	for range stalled {
		ctx := s.within(4)
		group.Go(func() {
			_, err := a.Call(ctx, cluster.Call{To: idB, Method: "create", Timeout: s.beats(2)})
			if !errors.Is(err, cluster.ErrBusy) {
				s.Errorf("a stalled call: %v", err)
			}
		})
	}
	group.Wait()
	s.Pass(s.beats(1))
	s.Freeze(b, false)
	s.eventually(3, "calls are answered again", func() bool {
		_, err := a.Call(s.within(1), cluster.Call{To: idB, Timeout: s.beats(1)})
		return err == nil
	})
	s.Pass(s.beats(1))
	if n := created.Load(); n < 1 || n > 4 {
		s.Errorf("%d calls ran, of %d that were late", n, stalled)
	}
}

// Without the store names are refused as busy in time, and all returns by itself.
func storeGone(s *scene) {
	a, idA := s.join(cluster.Member{})
	b, _ := s.join(cluster.Member{})
	e := s.claim(a, "name")
	a.Announce("oak", []byte("1"))
	s.Pass(s.beats(1))
	if h := a.Health(); !h.OK {
		s.Errorf("Health: %+v", h)
	}
	s.StoreGone(true)
	ask := map[string]func(context.Context) error{
		"Claim":   func(ctx context.Context) error { _, err := b.Claim(ctx, "other", 0); return err },
		"Find":    func(ctx context.Context) error { _, err := b.Find(ctx, "name"); return err },
		"Release": func(ctx context.Context) error { return b.Release(ctx, "name", 1) },
	}
	for what, fn := range ask {
		limit := s.within(3)
		s.want(what, fn(s.within(1)), cluster.ErrBusy)
		if limit.Err() != nil {
			s.Errorf("%s takes longer than its deadline", what)
		}
	}
	s.want("Hold", a.Hold("name", e), nil)
	s.eventually(5, "Health tells it", func() bool { h := a.Health(); return !h.OK && strings.Contains(h.Text, "busy") })
	s.eventually(cluster.LeaseBeats, "the lease is not confirmed", func() bool { return errors.Is(a.Hold("name", e), cluster.ErrBusy) })
	s.Pass(s.beats(2))
	s.StoreGone(false)
	s.eventually(20, "the lease is confirmed", func() bool { return a.Hold("name", e) == nil })
	s.eventually(20, "names can be claimed", func() bool { _, err := b.Claim(s.within(1), "new", 0); return err == nil })
	_, err := b.Claim(s.within(25), "name", 0)
	s.want("Claim of a held name", err, cluster.ErrTaken)
	if _, err := b.Claim(s.within(25), "other", 0); err != nil {
		s.Errorf("Claim of a name whose claim was refused as busy: %v", err)
	}
	s.eventually(5, "Health is good", func() bool { return a.Health().OK && b.Health().OK })
	s.eventually(5, "listed", func() bool { l := board(b, idA); return len(l.Rooms) == 1 && !l.Suspect })
}
