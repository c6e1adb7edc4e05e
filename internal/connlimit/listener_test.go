package connlimit

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/netloop/netloop/internal/net/endpoint"
)

// bare is a connection that counts its closes.
type bare struct {
	net.Conn
	host   byte
	closed int
}

func (b *bare) Close() error         { b.closed++; return nil }
func (b *bare) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, b.host)} }

// queue is a listener that accepts some connections and then fails.
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

// The longest quiet connection is closed first; a just answered one is the newest; a busy one is
// kept, and while all are busy new ones are refused.
func TestTheQuietestConnectionIsClosedFirst(t *testing.T) {
	var all [6]bare
	q := &queue{}
	for i := range all {
		q.all = append(q.all, &all[i])
	}
	closed := 0
	p := New(q, Config{Max: 2, Evicted: func() { closed++ }})
	accept := func() *Conn {
		t.Helper()
		c, err := p.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c.(*Conn)
	}
	a, b := accept(), accept()
	a.Busy()() // Now b has been quiet for longer.
	if p.quiet.Len() != 2 {
		t.Errorf("%d are quiet once the page is made", p.quiet.Len())
	}
	c := accept() // in the place of b
	if all[1].closed != 1 || all[0].closed != 0 || closed != 1 {
		t.Errorf("closed are %+v", all)
	}
	b.Busy()() // It was closed already.
	busy, ended := a.Busy(), c.Busy()
	_ = c.Close() // while its page is made
	ended()
	d := accept()
	if d.Busy(); all[3].closed != 0 || closed != 1 {
		t.Errorf("closed are %+v", all)
	}
	_, err := p.Accept() // All are busy: the rest of the queue is refused.
	if !errors.Is(err, net.ErrClosed) || all[4].closed != 1 || all[5].closed != 1 || closed != 3 {
		t.Errorf("%v, closed are %+v", err, all)
	}
	busy()
	if _ = a.Close(); p.quiet.Len() != 0 || p.busy.Len() != 1 {
		t.Errorf("%d are quiet, %d busy", p.quiet.Len(), p.busy.Len())
	}
	_ = a.Close() // counts once
	if p.quiet.Len() != 0 || p.busy.Len() != 1 {
		t.Errorf("%d are quiet, %d busy", p.quiet.Len(), p.busy.Len())
	}
}

// full returns a Pool that is full of quiet connections from these hosts.
func full(hosts ...byte) (p *Pool, all []*bare, come func(host byte) bool) {
	p = New(nil, Config{Max: len(hosts), Evicted: func() {}})
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

// A site with many connections gives up one for a site with few, and for its own: a crowd from one
// site does not evict others.
func TestASiteWithManyConnectionsMakesRoom(t *testing.T) {
	_, all, come := full(1, 2, 2, 2, 1)
	if !come(3) || all[1].closed != 1 || all[0].closed != 0 {
		t.Errorf("a newcomer is not let in for the oldest of the most: %+v", all)
	}
	if !come(2) || all[2].closed != 1 || all[0].closed != 0 {
		t.Errorf("a newcomer of the site with the most does not take a place of its own: %+v", all)
	}
}

// A site with only busy connections does not evict one of a site with fewer.
func TestABusySiteTakesNoEntryOfOthers(t *testing.T) {
	p, all, come := full(1, 2, 2)
	for e := p.quiet.Front(); e != nil; {
		c := e.Value.(*Conn)
		if e = e.Next(); c.site != endpoint.SiteOf(all[0].RemoteAddr()) {
			c.Busy()
		}
	}
	if come(2) || all[0].closed != 0 {
		t.Error("a site with more connections has closed one of a site with fewer")
	}
	if !come(3) || all[0].closed != 1 {
		t.Error("an equal of the quiet one is not let in")
	}
}

// A busy connection is closed if its site has at least two more than the others.
func TestABusySiteMakesRoomForClearlySmallerOnes(t *testing.T) {
	for _, c := range []struct {
		hosts, closes string
		newcomer      byte
	}{
		{"\x01\x01\x01\x02", "\x01", 3}, {"\x01\x01\x02", "\x02", 3}, {"\x02\x01", "\x02", 1},
	} {
		p, all, come := full([]byte(c.hosts)...)
		work(p, 1)
		if !come(c.newcomer) || string(closed(all)) != c.closes {
			t.Errorf("among %q a newcomer from %d closes %q, want %q", c.hosts, c.newcomer, closed(all), c.closes)
		}
	}
}

// A connection that has left the Pool is not counted by it any more.
func TestADetachedConnectionIsNotBounded(t *testing.T) {
	p, all, come := full(1)
	c := p.quiet.Front().Value.(*Conn)
	if !c.Detach() || c.Detach() || !come(2) || all[0].closed != 0 || p.quiet.Len() != 1 {
		t.Errorf("%d are open, closed are %+v", p.quiet.Len(), all)
	}
	if err := c.Close(); err != nil || p.quiet.Len() != 1 || all[0].closed != 1 {
		t.Errorf("%v, %d are open", err, p.quiet.Len())
	}
}

// An unwelcome connection is refused, and none is closed for it.
func TestAConnectionThatIsNotAllowedIsClosedAtOnce(t *testing.T) {
	p, all, come := full(1)
	p.cfg.Allow = func(at net.Addr) bool { return endpoint.SiteOf(at) != endpoint.SiteOf(all[0].RemoteAddr()) }
	if come(1) || all[0].closed != 0 {
		t.Error("somebody is let in who is not welcome")
	}
	if !come(2) {
		t.Error("somebody is kept out who is welcome")
	}
}

// A request's context returns its connection, with and without TLS.
func TestARequestKnowsItsConnection(t *testing.T) {
	c := &Conn{}
	for _, around := range []net.Conn{c, tls.Client(c, &tls.Config{MinVersion: tls.VersionTLS13})} {
		if FromContext(WithConn(t.Context(), around)) != c {
			t.Errorf("of %T there is another", around)
		}
	}
	if FromContext(t.Context()) != nil {
		t.Error("a request of nowhere has a connection")
	}
}

// work makes all connections of a site busy.
func work(p *Pool, host byte) {
	for e := p.quiet.Front(); e != nil; {
		c := e.Value.(*Conn)
		if e = e.Next(); c.site == endpoint.SiteOf((&bare{host: host}).RemoteAddr()) {
			c.Busy()
		}
	}
}

// closed returns the hosts of closed connections, in order of arrival.
func closed(all []*bare) (hosts []byte) {
	for _, b := range all {
		for range b.closed {
			hosts = append(hosts, b.host)
		}
	}
	return hosts
}

// A site with all connections busy gives them up for others, its oldest first, until they have
// about as many; it evicts none of theirs, and a quiet connection of a small site is kept.
func TestASiteWithManyAnswersMakesRoom(t *testing.T) {
	p, all, come := full(1, 1, 2, 1, 1, 1)
	work(p, 1)
	if !come(3) || all[0].closed != 1 || len(closed(all)) != 1 {
		t.Errorf("a newcomer closes %v", closed(all))
	}
	work(p, 3)
	if come(1) || len(closed(all)) != 1 {
		t.Errorf("a newcomer of the site with the most closes %v", closed(all))
	}
	for range 2 {
		come(3)
		work(p, 3)
	}
	if got := closed(all); string(got) != "\x01\x01" || all[1].closed != 1 {
		t.Errorf("further ones close %v", got)
	}
	if come(3) {
		t.Error("a site gets more than the one that had the most")
	}
}

// A site has at most PerSite connections, even if the Pool has room: a new one replaces a quiet one
// of its own site only.
func TestConnectionsOfASiteAreBounded(t *testing.T) {
	p, all, come := full(2, 1, 1, 0, 0, 0)
	p.cfg.PerSite = 3
	if !come(1) || len(closed(all)) != 1 {
		t.Errorf("below its bound a site closes %v", closed(all))
	}
	p.cfg.Max++
	if !come(1) || all[1].closed != 1 || all[0].closed != 0 {
		t.Errorf("at its bound a site closes %v", closed(all))
	}
	work(p, 1)
	if come(1) || !come(3) || p.sites[endpoint.SiteOf(all[1].RemoteAddr())] != 3 {
		t.Errorf("a site has %d connections, at most 3 are allowed", p.sites[endpoint.SiteOf(all[1].RemoteAddr())])
	}
	p, all, come = full(1, 2)
	p.cfg.Max, p.cfg.PerSite = 3, 1
	if !come(1) || all[0].closed != 1 {
		t.Errorf("a site that may have one closes %v", closed(all))
	}
}

// A proxy's connection has no site until its client is known, and then the client's site, which has
// a bound.
func TestAProxysConnectionIsOfItsClientsSite(t *testing.T) {
	p, _, come := full(1, 1, 7, 7, 7)
	p.cfg.Max, p.cfg.PerSite = 9, 2
	at := func(host byte) net.Addr { return (&bare{host: host}).RemoteAddr() }
	p.cfg.Proxy = func(from net.Addr) bool { return endpoint.SiteOf(from) == endpoint.SiteOf(at(9)) }
	for range 3 {
		if !come(9) || p.sites[endpoint.SiteOf(at(9))] != 0 {
			t.Fatal("a proxy has a site of its own")
		}
	}
	c := p.quiet.Back().Value.(*Conn)
	if c.SetSite(at(1)) || !c.SetSite(at(5)) || !c.SetSite(at(5)) || p.sites[endpoint.SiteOf(at(5))] != 1 || p.sites[endpoint.SiteOf(at(1))] != 2 {
		t.Errorf("the sites have %v", p.sites)
	}
	if p.cfg.PerSite = 1; !c.SetSite(at(5)) || !c.SetSite(at(6)) || p.sites[endpoint.SiteOf(at(5))] != 0 || p.sites[endpoint.SiteOf(at(6))] != 1 {
		t.Errorf("when its client is another, they have %v", p.sites)
	}
	if c.Detach(); p.sites[endpoint.SiteOf(at(6))] != 0 || !c.SetSite(at(5)) || p.sites[endpoint.SiteOf(at(5))] != 0 {
		t.Errorf("when it has left they have %v", p.sites)
	}
	if len(p.sites) != 2 { // Those of the hosts 1 and 7.
		t.Errorf("a site without connections is kept: %v", p.sites)
	}
	p, all, come := full(9)
	p.quiet.Front().Value.(*Conn).site, p.sites = netip.Prefix{}, map[netip.Prefix]int{}
	if !come(3) || all[0].closed != 1 {
		t.Error("a proxy's connection without a client keeps others out")
	}
}
