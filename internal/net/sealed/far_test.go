package sealed

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"time"
)

// If a path's round trip becomes long, datagrams soon travel as records for good, and follow the
// client to a new address, although many challenges are under way.
func TestLongRoundTrips(t *testing.T) {
	for _, rtt := range []time.Duration{40 * time.Millisecond, 500 * time.Millisecond, time.Second, 3 * time.Second} {
		t.Run(rtt.String(), func(t *testing.T) { testLongRoundTrip(t, rtt) })
	}
}

func testLongRoundTrip(t *testing.T, long time.Duration) {
	rtt := 40 * time.Millisecond
	type arrival struct {
		at time.Duration
		do func()
	}
	var now time.Duration
	var under []arrival // way
	serverAt := netip.MustParseAddrPort("192.0.2.1:4433")
	clientAt := netip.MustParseAddrPort("192.0.2.2:1000")
	var client, server *Table
	stats := new(Stats)
	table := func(from *netip.AddrPort, to **Table) *Table {
		return NewTable(Config{
			Stats: stats, Clock: func() time.Duration { return now }, After: func(time.Duration, func()) {},
			Write: func(b, _ []byte, at *net.UDPAddr) error {
				b, source := bytes.Clone(b), *from
				under = append(under, arrival{now + rtt/2, func() {
					if to == &server || at.AddrPort() == clientAt {
						(*to).Receive(b, source, nil, 0)
					}
				}})
				return nil
			},
		})
	}
	client, server = table(&clientAt, &server), table(&serverAt, &client)
	ends := []*Channel{
		client.open(keysOf(1), net.UDPAddrFromAddrPort(serverAt), func() {}),
		server.open(keysOf(1), net.UDPAddrFromAddrPort(clientAt), nil),
	}
	for _, c := range ends {
		c.Start(func([]byte, int, uint32, time.Duration) {}, func() {})
	}
	number := uint32(0)
	run := func(d time.Duration) {
		for end := now + d; now < end; now += 10 * time.Millisecond {
			for len(under) > 0 && under[0].at <= now {
				do := under[0].do
				under = under[1:]
				do()
			}
			for _, c := range ends {
				if number++; c.Active() {
					c.Send(number, nil)
				}
				if now%tickPeriod == 0 {
					c.tick(now + 1)
				}
			}
		}
	}
	run(5 * time.Second)
	rtt = long
	run(10*time.Second + 5*rtt)
	returns := stats.Returns.Load()
	if run(20 * time.Second); stats.Returns.Load() != returns || !ends[0].Active() || !ends[1].Active() {
		t.Errorf("in 20 s datagrams returned to QUIC %d times", stats.Returns.Load()-returns)
	}
	clientAt = netip.MustParseAddrPort("192.0.2.3:2000")
	if run(3 * rtt); !same(ends[1].peer.Load(), clientAt) {
		t.Error("records are sent to the former address after 3 round trips")
	}
}
