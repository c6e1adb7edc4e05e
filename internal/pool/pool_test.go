package pool

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"
)

// bare is a connection that knows whether it is closed.
type bare struct {
	net.Conn
	host   byte
	closed int
}

func (b *bare) Close() error         { b.closed++; return nil }
func (b *bare) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, b.host)} }

// queue is a listener with some connections, and then an error.
type queue struct {
	net.Listener
	all []*bare
}

func (q *queue) Accept() (net.Conn, error) {
	if len(q.all) == 0 {
		return nil, net.ErrClosed
	}
	c := q.all[0]
	q.all = q.all[1:]
	return c, nil
}

// The connection that has been quiet for longest goes first; one that has just been answered is
// the newest; one that is busy stays, and while all are busy nobody else comes in.
func TestTheQuietestConnectionGoesFirst(t *testing.T) {
	var all [6]bare
	q := &queue{}
	for i := range all {
		q.all = append(q.all, &all[i])
	}
	closed := 0
	p := New(q, Config{Max: 2, Closed: func() { closed++ }})
	accept := func() *Conn {
		t.Helper()
		c, err := p.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c.(*Conn)
	}
	a, b := accept(), accept()
	a.Work()()    // Now b has been quiet for longer.
	c := accept() // in the place of b
	if all[1].closed != 1 || all[0].closed != 0 || closed != 1 {
		t.Errorf("closed are %+v", all)
	}
	b.Work()() // It is gone already.
	busy, ended := a.Work(), c.Work()
	_ = c.Close() // while its page is made
	ended()
	d := accept()
	if d.Work(); all[3].closed != 0 || closed != 1 {
		t.Errorf("closed are %+v", all)
	}
	_, err := p.Accept() // All are busy: the rest of the queue is turned away.
	if !errors.Is(err, net.ErrClosed) || all[4].closed != 1 || all[5].closed != 1 || closed != 3 {
		t.Errorf("%v, closed are %+v", err, all)
	}
	busy()
	if _ = a.Close(); p.quiet.Len() != 0 || p.open != 1 {
		t.Errorf("%d quiet of %d", p.quiet.Len(), p.open)
	}
	_ = a.Close() // counts once
	if p.quiet.Len() != 0 || p.open != 1 {
		t.Errorf("%d quiet of %d", p.quiet.Len(), p.open)
	}
}

// full makes a pool that is full of quiet connections, which say where they come from.
func full(hosts ...byte) (p *Pool, all []*bare, come func(host byte) bool) {
	p = New(nil, Config{Max: len(hosts), Closed: func() {}})
	come = func(host byte) bool {
		b := &bare{host: host}
		all = append(all, b)
		return p.admit(b) != nil
	}
	for _, host := range hosts {
		come(host)
	}
	return p, all, come
}

// Who has many connections makes room for who has few, and for its own: a crowd from one place
// moves nobody else.
func TestASiteWithManyConnectionsMakesRoom(t *testing.T) {
	_, all, come := full(1, 2, 2, 2, 1)
	if !come(3) || all[1].closed != 1 || all[0].closed != 0 {
		t.Errorf("a newcomer is not let in for the oldest of the most: %+v", all)
	}
	if !come(2) || all[2].closed != 1 || all[0].closed != 0 {
		t.Errorf("a newcomer of the site with the most does not take a place of its own: %+v", all)
	}
}

// A site all of whose connections are busy gets none of others that have fewer.
func TestABusySiteTakesNobodysPlace(t *testing.T) {
	p, all, come := full(1, 2, 2)
	for e := p.quiet.Front(); e != nil; {
		c := e.Value.(*Conn)
		if e = e.Next(); c.site != siteOf(all[0].RemoteAddr()) {
			c.Work()
		}
	}
	if come(2) || all[0].closed != 0 {
		t.Error("a site with more connections has closed one of a site with fewer")
	}
	if !come(3) || all[0].closed != 1 {
		t.Error("an equal of the quiet one is not let in")
	}
}

// A connection that has left the pool is bounded by somebody else, and counts no more.
func TestWhoHasLeftIsNotBounded(t *testing.T) {
	p, all, come := full(1)
	c := p.quiet.Front().Value.(*Conn)
	if !c.Leave() || c.Leave() || !come(2) || all[0].closed != 0 || p.open != 1 {
		t.Errorf("%d are open, closed are %+v", p.open, all)
	}
	if err := c.Close(); err != nil || p.open != 1 || all[0].closed != 1 {
		t.Errorf("%v, %d are open", err, p.open)
	}
}

// Who is not welcome costs nothing, and nobody goes for it.
func TestWhoIsNotWelcomeGoesAtOnce(t *testing.T) {
	p, all, come := full(1)
	p.cfg.Welcome = func(at net.Addr) bool { return siteOf(at) != siteOf(all[0].RemoteAddr()) }
	if come(1) || all[0].closed != 0 {
		t.Error("somebody is let in who is not welcome")
	}
	if !come(2) {
		t.Error("somebody is kept out who is welcome")
	}
}

// A request knows its connection, with TLS around it too.
func TestARequestKnowsItsConnection(t *testing.T) {
	c := &Conn{}
	for _, around := range []net.Conn{c, tls.Client(c, &tls.Config{MinVersion: tls.VersionTLS13})} {
		if Of(With(t.Context(), around)) != c {
			t.Errorf("of %T there is another", around)
		}
	}
	if Of(t.Context()) != nil {
		t.Error("a request of nowhere has a connection")
	}
}
