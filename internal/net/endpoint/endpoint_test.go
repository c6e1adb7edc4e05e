package endpoint

import (
	"net/netip"
	"testing"
)

func TestSite(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.7":              "192.0.2.7/32",
		"::ffff:192.0.2.7":       "192.0.2.7/32",
		"2001:db8:1:2ff:3:4:5:6": "2001:db8:1:200::/56",
		"2001:db8:1:200::":       "2001:db8:1:200::/56",
		"2001:db8:1:300::":       "2001:db8:1:300::/56",
		"fe80::1:2%eth0":         "fe80::/56",
		"::1":                    "::/56",
	} {
		if got := Site(netip.MustParseAddr(addr)); got.String() != want {
			t.Errorf("%s is of the site %v, want %s", addr, got, want)
		}
	}
	if got := Site(netip.Addr{}); got != (netip.Prefix{}) {
		t.Error("no address has the site", got)
	}
}
