package transport

import (
	"errors"
	"testing"
)

// A Carrier survives marshalling, and other names are refused.
func TestCarriersByName(t *testing.T) {
	for c := range NumCarriers {
		text, err := c.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		back := NumCarriers
		if err := back.UnmarshalText(text); err != nil || back != c {
			t.Errorf("%q reads %v, %v", text, back, err)
		}
	}
	var c Carrier
	for _, name := range []string{"", "QUIC", "tcp"} {
		if err := c.UnmarshalText([]byte(name)); !errors.Is(err, ErrCarrier) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := NumCarriers.MarshalText(); !errors.Is(err, ErrCarrier) || NumCarriers.String() != "carrier 3" {
		t.Error(err, NumCarriers)
	}
	if want := "use quic, webtransport or websocket"; ErrCarrier.Error() != want {
		t.Errorf("%q, want %q", ErrCarrier, want)
	}
}
