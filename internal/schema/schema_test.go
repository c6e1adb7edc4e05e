package schema

import (
	"fmt"
	"strings"
	"testing"
)

// refused returns the panic text of Claim for a declaration, "" if it is accepted.
func refused(s *Schema, kind, name string) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	s.Claim(kind, name)
	return ""
}

// A schema takes so many classes and methods together, and not one more.
func TestASchemaTakesItsDeclarationsUpToTheBound(t *testing.T) {
	s := New("many", 1, 0)
	for n := range maxDeclarations {
		if text := refused(s, []string{"class", "method"}[n%2], fmt.Sprint(n)); text != "" {
			t.Fatalf("declaration %d: %s", n+1, text)
		}
	}
	if text := refused(s, "class", "one more"); !strings.Contains(text, "more than 8192 classes and methods") {
		t.Errorf("one more: %q", text)
	}
}

// A name is free once per kind, has 1 to 64 bytes, and is declared before the schema is used.
func TestNamesAreClaimed(t *testing.T) {
	s := New("names", 1, 0)
	for _, c := range []struct{ kind, name, refused string }{
		{"class", "x", ""},
		{"method", "x", ""},
		{"class", "x", "declared twice"},
		{"class", "", "1 to 64 bytes"},
		{"class", strings.Repeat("n", 64), ""},
		{"class", strings.Repeat("n", 65), "1 to 64 bytes"},
	} {
		if text := refused(s, c.kind, c.name); (text == "") != (c.refused == "") || !strings.Contains(text, c.refused) {
			t.Errorf("%s %q: %q, want %q", c.kind, c.name, text, c.refused)
		}
	}
	s.Freeze()
	if text := refused(s, "class", "y"); !strings.Contains(text, "after schema") {
		t.Errorf("after its first use: %q", text)
	}
	for _, c := range []struct {
		name         string
		major, minor int
		ok           bool
	}{{"s", 0, 0, true}, {"", 1, 0, false}, {"s", -1, 0, false}, {"s", 0, -1, false}} {
		func() {
			defer func() {
				if ok := recover() == nil; ok != c.ok {
					t.Errorf("New(%q, %d, %d): %v, want %v", c.name, c.major, c.minor, ok, c.ok)
				}
			}()
			New(c.name, c.major, c.minor)
		}()
	}
}
