package inspect

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/netloop/netloop/internal/netvar/state"
)

// The page and its files have headers that let a browser load nothing else. Other names are not
// found.
func TestThePageIsServed(t *testing.T) {
	page := Page()
	for file, want := range map[string]int{"": http.StatusOK, "inspect.js": http.StatusOK, "netloop.js": http.StatusOK, "other.js": http.StatusNotFound} {
		r, w := httptest.NewRequest(http.MethodGet, "/inspect/"+file, nil), httptest.NewRecorder()
		r.SetPathValue("file", file)
		page.ServeHTTP(w, r)
		if w.Code != want || w.Body.Len() == 0 {
			t.Errorf("%q is answered with %d and %d bytes, want %d", file, w.Code, w.Body.Len(), want)
		}
		for key, value := range map[string]string{"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
			if got := w.Header().Get(key); want == http.StatusOK && got != value {
				t.Errorf("%q has the header %s: %q", file, key, got)
			}
		}
	}
}

// Classes are described with their fields, and with the position of SetMap. Lists are never null.
func TestClassesAreDescribed(t *testing.T) {
	type ship struct {
		X, Y float32
		Fuel uint8 `net:"read=owner"`
	}
	class := func(name string, typ reflect.Type) *state.Class {
		c, err := state.NewClass(name, typ)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ships, marks := class("ship", reflect.TypeFor[ship]()), class("mark", reflect.TypeFor[struct{ N int8 }]())
	if err := ships.SetMap("X", "Y"); err != nil {
		t.Fatal(err)
	}
	const want = `[{"ship" ["X" "Y" "Fuel"] ["float32" "float32" "uint8"] ["" "" "owner"] ["X" "Y"]} {"mark" ["N"] ["int8"] [""] []}]`
	if got := fmt.Sprintf("%q", Classes([]*state.Class{ships, marks})); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if Classes([]*state.Class{marks})[0].Map == nil {
		t.Error("a class without a map has null as JSON")
	}
}
