package app

import (
	"net"
	"strings"
	"testing"

	"github.com/netloop/netloop"
)

// An address that means all addresses of this machine keeps the configured name. The banner names
// the address for a browser, and the other machines with access.
func TestAddressesOfAllInterfacesAreSaid(t *testing.T) {
	all := &net.TCPAddr{IP: net.IPv6unspecified, Port: 99}
	for asked, want := range map[string]string{"0.0.0.0:0": "0.0.0.0:99", "[::]:0": "[::]:99", ":0": ":99"} {
		got := bound(all, asked)
		if got != want || hereOf(got) != "127.0.0.1:99" {
			t.Errorf("%s: bound as %s, here at %s", asked, got, hereOf(got))
		}
	}
	if got := bound(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 99}, "localhost:0"); got != "127.0.0.1:99" || hereOf(got) != got {
		t.Errorf("localhost is bound as %s, here at %s", got, hereOf(got))
	}
	said := func(admin string) string {
		b := banner{at: addresses{Admin: admin}, cfg: netloop.Config{Room: netloop.RoomSpec{Rate: netloop.Hz(60)}}}
		return b.String()
	}
	const everybody = "every other address of this machine, for clients with a token"
	if text := said("0.0.0.0:99"); !strings.Contains(text, "http://127.0.0.1:99 ") || !strings.Contains(text, everybody) {
		t.Error("the banner says", text)
	}
	if text := said("127.0.0.1:99"); strings.Contains(text, everybody) {
		t.Error("the banner says", text)
	}
}
