package spelling

import (
	"strings"
	"testing"
)

func TestTheNearestNameIsFound(t *testing.T) {
	names := []string{"clients", "client", "duration", "addr", "port", "interpolation"}
	for wrote, want := range map[string]string{
		"clinets": "clients", "client": "client", "CLIENTS": "clients", "duraton": "duration", "adr": "addr", "ddar": "",
		"for": "", "": "", "something-else-that-is-long": "", "clientx": "clients",
		"xntxrpxlation": "interpolation", "interpolat": "interpolation", "xntxrpxlatixn": "", "interpola": "",
	} {
		if got := Nearest(wrote, names); got != want {
			t.Errorf("%q is taken for %q, want %q", wrote, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"rocks", "rokcs", 1}, {"run", "rnu", 1}, {"run", "urn", 1}, {"same", "same", 0}} {
		if got := distance(tt.a, tt.b); got != tt.want || distance(tt.b, tt.a) != got {
			t.Errorf("%q, %q: got %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

// A text much longer than all names is not compared, because that would take time and memory.
func TestALongTextIsNotCompared(t *testing.T) {
	wrote, names := strings.Repeat("x", 1<<20), []string{"clients", "duration"}
	if n := testing.AllocsPerRun(10, func() { Nearest(wrote, names) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
