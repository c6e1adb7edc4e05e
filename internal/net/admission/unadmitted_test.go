package admission

import (
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/net/endpoint"
	"github.com/netloop/netloop/internal/transport"
)

// testTable is the table of unadmitted connections, with a clock of its own.
type testTable struct {
	*unadmitted
	at   time.Time
	gone []Incoming // connections that were told to close
}

func newTable(most int) *testTable {
	c := &testTable{unadmitted: newUnadmitted(most, 1000, new(transport.Stats)), at: time.Unix(1000, 0)}
	c.now = func() time.Time { return c.at }
	c.dismiss = func(in Incoming) { c.gone = append(c.gone, in) }
	return c
}

// from is an address of site n.
func from(n int) net.Addr { return &net.UDPAddr{IP: net.IPv4(10, 0, byte(n>>8), byte(n)), Port: 1000} }

// connect adds a connection of site n up to its hello, or returns nil.
func (c *testTable) connect(n int) *entry {
	a := c.reserve(from(n), true)
	if a != nil && !c.complete(a, new(silentConn)) {
		return nil
	}
	return a
}

// mustConnect adds some connections of a site, a millisecond apart.
func (c *testTable) mustConnect(t *testing.T, site, n int) (all []*entry) {
	t.Helper()
	for range n {
		c.at = c.at.Add(time.Millisecond)
		a := c.connect(site)
		if a == nil {
			t.Fatal("no entry for an unadmitted connection of site", site)
		}
		all = append(all, a)
	}
	return all
}

// wantDropped checks a counter.
func (c *testTable) wantDropped(t *testing.T, d transport.Drop, want uint64) {
	t.Helper()
	if n := c.stats.Dropped(d); n != want {
		t.Errorf("%d are counted, want %d", n, want)
	}
}

// One site has a bounded number of entries, even if others are free; an entry that was left is
// free again, once.
func TestUnadmittedConnectionsOfASiteAreBounded(t *testing.T) {
	c := newTable(100)
	all := c.mustConnect(t, 1, maxPerSite)
	if c.connect(1) != nil || !c.mustProveAddress(from(1), false) {
		t.Error("one more has an entry")
	}
	c.wantDropped(t, transport.DropHandshakeSite, 1)
	if c.mustProveAddress(from(2), false) {
		t.Error("another site has to prove its address")
	}
	c.mustConnect(t, 2, maxPerSite)
	c.remove(all[0])
	c.remove(all[0])
	c.mustConnect(t, 1, 1)
	if c.connect(1) != nil {
		t.Error("an entry was given back twice")
	}
	if n := c.stats.Unadmitted.Load(); n != 2*maxPerSite {
		t.Error(n, "unadmitted connections are counted")
	}
}

// A site with many unadmitted connections does not keep out a site with few: its oldest connection
// is evicted at once. A new connection of the site with the most is refused.
func TestASiteWithManyUnadmittedConnectionsMakesRoom(t *testing.T) {
	c := newTable(8)
	few, many := c.mustConnect(t, 1, 2), c.mustConnect(t, 2, 6)
	half := many[0]
	half.stage, half.conn = proven, nil // A half-open connection cannot be told to close.
	if c.connect(2) != nil {
		t.Error("a seventh of the site with the most is admitted")
	}
	c.wantDropped(t, transport.DropHandshakes, 1)
	if c.mustConnect(t, 3, 1); len(c.gone) != 1 || c.gone[0] != many[1].conn {
		t.Error("the oldest of the site with the most is not told to close")
	}
	c.wantDropped(t, transport.DropDismissed, 1)
	if c.mustConnect(t, 1, 1); len(c.gone) != 2 || c.gone[1] != many[2].conn {
		t.Error("the next oldest is not told to close")
	}
	if few[0].stage != connected || few[1].stage != connected {
		t.Error("a site with few unadmitted connections has lost one")
	}
}

// Between sites with equally many, the oldest connection is evicted, but not within a second: a
// crowd does not keep itself out.
func TestTheOldestUnadmittedConnectionIsDismissedFirst(t *testing.T) {
	c := newTable(3)
	var all []*entry
	for site := range 3 {
		all = append(all, c.mustConnect(t, site, 1)...)
	}
	c.at = all[0].since.Add(dismissAfter - 1)
	if c.connect(3) != nil || len(c.gone) != 0 {
		t.Error("an unadmitted connection were told to close that has just come")
	}
	c.at = all[0].since.Add(dismissAfter)
	if a := c.connect(3); a == nil || len(c.gone) != 1 || c.gone[0] != all[0].conn {
		t.Error("the oldest unadmitted connection was not told to make room after", dismissAfter)
	}
	if c.connect(4) != nil || len(c.gone) != 1 {
		t.Error("another were told to close before its time")
	}
}

// Hanging admissions that were told to close hold the entries of their sites, and in total at most
// as many as there are entries.
func TestHangingAdmissionsAreBounded(t *testing.T) {
	const most = 4
	c := newTable(most)
	hang := c.mustConnect(t, 0, most)
	for site := 1; site <= most; site++ {
		c.mustConnect(t, site, 1)
	}
	if len(c.gone) != most || len(c.known) != 2*most {
		t.Errorf("%d were told to close, and %d are known", len(c.gone), len(c.known))
	}
	c.at = c.at.Add(time.Hour)
	if c.connect(most+1) != nil {
		t.Error("beside as many hanging admissions as entries another unadmitted connection is admitted")
	}
	c.release(hang[0]) // Its connection has ended, its admission has not.
	if c.connect(most+1) != nil {
		t.Error("the end of its connection frees the entry of an admission")
	}
	c.remove(hang[0])
	c.mustConnect(t, most+1, 1)
}

// A forged address costs its owner no more than a Retry: some connections may begin without proof,
// then all must prove their address, and only proven ones count against a site.
func TestForgedAddressesDoNotKeepOthersOut(t *testing.T) {
	c := newTable(100)
	var forged []*entry
	for range maxPerSite {
		if c.mustProveAddress(from(1), false) {
			t.Fatal("a proof is asked for too early")
		}
		forged = append(forged, c.reserve(from(1), false))
	}
	if !c.mustProveAddress(from(1), false) || c.mustProveAddress(from(2), false) {
		t.Error("a site with many unproven unadmitted connections has to prove its address, no other")
	}
	for n := maxPerSite; n < maxHalfOpen; n++ {
		forged = append(forged, c.reserve(from(n), false))
	}
	if !c.mustProveAddress(from(99), false) {
		t.Error("beside", maxHalfOpen, "handshakes that are half open a proof is not asked for")
	}
	if n := c.stats.Retries.Load(); n != 2 {
		t.Error(n, "proofs are counted")
	}
	c.mustConnect(t, 1, maxPerSite)
	c.release(forged[0])
	if c.mustProveAddress(from(99), false) {
		t.Error("the end of a half open handshake frees no entry")
	}
	if c.complete(forged[0], nil) {
		t.Error("an unadmitted connection that has left is served")
	}
	if c.complete(forged[1], nil) || c.stats.Dropped(transport.DropHandshakeSite) != 1 {
		t.Error("with its proof an unadmitted connection goes beyond the entries of its site")
	}
	if !c.complete(forged[maxHalfOpen-1], nil) {
		t.Error("an address that the handshake has proven has no entry")
	}
	if n := c.halfOpen; n != maxHalfOpen-3 {
		t.Error(n, "handshakes count as half open")
	}
}

// After any sequence of events the counts match the connections.
func TestUnadmittedConnectionsAreCounted(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := newTable(6)
		var all []*entry
		for range 2000 {
			c.at = c.at.Add(time.Duration(rng.IntN(300)) * time.Millisecond)
			if n := len(all); n > 0 && rng.IntN(2) == 0 {
				i := rng.IntN(n)
				switch rng.IntN(3) {
				case 0:
					c.remove(all[i])
				case 1:
					c.release(all[i])
				default:
					c.complete(all[i], new(silentConn))
				}
			} else if a := c.reserve(from(rng.IntN(9)), c.mustProveAddress(from(0), false) || rng.IntN(2) == 0); a != nil {
				all = append(all, a)
			}
			c.check(t, seed, all)
		}
		for _, a := range all {
			c.remove(a)
		}
		if len(c.known)+len(c.sites)+len(c.unproven)+c.dismissed+c.halfOpen != 0 || c.stats.Unadmitted.Load() != 0 {
			t.Fatalf("seed %d: when all have left there is something", seed)
		}
	}
}

// check compares the counts with a new count.
func (c *testTable) check(t *testing.T, seed uint64, all []*entry) {
	t.Helper()
	stages := map[stage]int{}
	sites := map[any]int{}
	for _, a := range all {
		stages[a.stage]++
		if a.stage != unproven && a.stage != removed {
			sites[a.site]++
		}
	}
	known := stages[proven] + stages[connected] + stages[dismissed]
	if len(c.known) != known || c.dismissed != stages[dismissed] || c.halfOpen != stages[unproven] ||
		c.stats.Unadmitted.Load() != int64(known+stages[unproven]) {
		t.Fatalf("seed %d: %d known, %d told, %d half open, but there are %v", seed, len(c.known), c.dismissed, c.halfOpen, stages)
	}
	for site, n := range sites {
		if n > maxPerSite {
			t.Fatalf("seed %d: %d of %v", seed, n, site)
		}
	}
	if known-c.dismissed > c.max || c.dismissed > c.max {
		t.Fatalf("seed %d: %d known, %d told", seed, known, c.dismissed)
	}
}

// The handshakes of proven addresses are limited in rate, for each site and in total.
func TestHandshakesHaveARate(t *testing.T) {
	const burst = 20
	c := newTable(1000)
	c.rates = newRates(burst)
	pass := func(site int) bool { // in and out
		a := c.connect(site)
		if a != nil {
			c.remove(a)
		}
		return a != nil
	}
	var early []*entry // They have no proof yet.
	for n := range 3 {
		early = append(early, c.reserve(from(50+n), false))
	}
	for n := range burst {
		if c.refuses(from(1)) || !pass(1) {
			t.Fatal("no rate for handshake", n)
		}
	}
	if pass(1) || !c.mustProveAddress(from(1), false) || !c.refuses(from(1)) {
		t.Error("a site is faster than its rate")
	}
	c.wantDropped(t, transport.DropHandshakeRate, 1)
	if pass(2) {
		t.Error("all together are faster than their rate")
	}
	c.at = c.at.Add(time.Second / siteRate)
	for n := range allRate / siteRate {
		if want := n < 1; pass(1) != want {
			t.Errorf("after a moment handshake %d of the site: %v", n, !want)
		}
	}
	for site := 2; site < 2+allRate/siteRate; site++ {
		if want := site < 1+allRate/siteRate; pass(site) != want {
			t.Errorf("after a moment a handshake of site %d: %v", site, !want)
		}
	}
	for _, a := range early { // They count once they have given one.
		if !c.complete(a, nil) {
			t.Fatal("no entry")
		}
	}
	if c.reserve(from(60), false) != nil {
		t.Error("beyond the rate there is an entry without a proof")
	}
	c.wantDropped(t, transport.DropUnproven, 1)
	if tokens := c.rates.all.TokensAt(c.at); tokens > -2 {
		t.Error("after handshakes without a proof there are", tokens, "tokens left")
	}
}

// The bucket of a site is kept until it is full again, and no longer.
func TestRatesForget(t *testing.T) {
	const burst = 100
	r := newRates(burst)
	at := time.Unix(5000, 0)
	first := endpoint.SiteOf(from(0))
	for range burst {
		r.take(first, at)
	}
	for n := 1; n < 100_000; n++ {
		at = at.Add(time.Second / allRate)
		if !r.have(endpoint.SiteOf(from(n)), at) {
			continue
		}
		r.take(endpoint.SiteOf(from(n)), at)
		if held, most := len(r.now)+len(r.before), 2*int(allRate*r.period.Seconds()+burst+1); held > most {
			t.Fatalf("%d sites are remembered, more than %d", held, most)
		}
		if l := r.now[first]; l == nil && r.before[first] == nil && at.Sub(time.Unix(5000, 0)) < burst*time.Second/siteRate {
			t.Fatal("a bucket is forgotten before it is full")
		}
	}
	at = r.turn.Add(r.period)
	if r.have(first, at); len(r.now)+len(r.before) != 0 {
		t.Error("after a long time sites are remembered")
	}
}

// A bucket that is not full is moved to the next generation, and kept there.
func TestABucketOutlivesItsGeneration(t *testing.T) {
	const burst = 100
	r := newRates(burst)
	at := time.Unix(5000, 0)
	site := endpoint.SiteOf(from(1))
	r.take(endpoint.SiteOf(from(0)), at) // The generation begins.
	at = at.Add(r.period - time.Millisecond)
	for range burst {
		r.take(site, at)
	}
	r.all.SetBurst(10 * burst)
	at = at.Add(2 * time.Millisecond)
	r.all.ReserveN(at, -burst) // The bucket over all sites is nearly full.
	for n := range 3 {
		if r.have(site, at) {
			t.Errorf("after the turn of the generation, at look %d, the bucket is full", n)
		}
	}
	if !r.have(endpoint.SiteOf(from(2)), at) {
		t.Error("another site has no rate")
	}
	if r.before[site] != nil {
		t.Error("it is remembered twice")
	}
}

// A bucket is kept until it is full, even after its site and all half-open handshakes came at once.
func TestABucketIsRememberedUntilItIsFull(t *testing.T) {
	const burst = 100
	r := newRates(burst)
	at := time.Unix(5000, 0)
	site := endpoint.SiteOf(from(1))
	r.take(endpoint.SiteOf(from(0)), at) // The generation begins.
	at = r.turn.Add(-time.Millisecond)
	for range burst + maxHalfOpen {
		r.take(site, at)
	}
	at = at.Add((burst + maxHalfOpen) * time.Second / siteRate)
	if r.find(site, at.Add(-time.Millisecond)) == nil {
		t.Error("a bucket is forgotten before it is full")
	}
}

// A connection that was told to close takes no entry of a new one, but a half-open one does.
func TestADismissedConnectionTakesNoEntry(t *testing.T) {
	const most = 4
	c := newTable(most)
	all := c.mustConnect(t, 0, most)
	c.mustConnect(t, 1, 1) // One is told to close.
	c.remove(all[most-1])
	if c.mustProveAddress(from(2), false) {
		t.Error("where there is an entry a proof is asked for")
	}
	half := c.reserve(from(3), false)
	if half == nil || !c.mustProveAddress(from(2), false) {
		t.Error("where a handshake that is half open has the last entry no proof is asked for")
	}
	c.release(half)
	if c.mustConnect(t, 2, 1); len(c.gone) != 1 {
		t.Errorf("%d were told to close", len(c.gone))
	}
}

// A new connection counts for its site: a site evicts its own oldest, even beside older ones of
// others, and that of another site only if that site has two more.
func TestANewcomerCountsWithItsSite(t *testing.T) {
	c := newTable(6)
	c.mustConnect(t, 2, 3)
	own := c.mustConnect(t, 1, 3)
	c.at = c.at.Add(dismissAfter)
	if c.mustConnect(t, 1, 1); len(c.gone) != 1 || c.gone[0] != own[0].conn {
		t.Error("the oldest of its site is not told to close")
	}
	for _, few := range []int{1, 2, 3} {
		c := newTable(6)
		c.mustConnect(t, 1, few)
		c.mustConnect(t, 2, 6-few)
		if want := 6-few >= few+2; (c.connect(1) != nil) != want {
			t.Errorf("beside %d others, of a site with %d: %v", 6-few, few, !want)
		}
	}
}

// Retries are sent in bursts of retryBurst, and no more.
func TestProofsHaveARate(t *testing.T) {
	c := newTable(100)
	c.mustConnect(t, 1, maxPerSite)
	asked := 0
	for range 2 * retryBurst {
		if c.mustProveAddress(from(1), false) {
			asked++
		}
	}
	if asked != retryBurst {
		t.Errorf("%d are asked for a proof, want %d", asked, retryBurst)
	}
}
