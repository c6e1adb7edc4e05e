package directory_test

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/netloop/netloop/internal/directory"
)

// For each query, the pages together are the matching rooms, once each and in the requested order;
// equal rooms keep the order of opening.
func TestPagesTogetherAreTheList(t *testing.T) {
	less := map[string]func(a, b directory.Row) bool{
		"": func(_, _ directory.Row) bool { return false }, "opened": func(_, _ directory.Row) bool { return false },
		"name": func(a, b directory.Row) bool { return a.Name < b.Name }, "kind": func(a, b directory.Row) bool { return a.Kind < b.Kind },
		"clients": func(a, b directory.Row) bool { return a.Clients > b.Clients }, "seats": func(a, b directory.Row) bool { return a.Seats > b.Seats },
		"rate": func(a, b directory.Row) bool { return a.Rate > b.Rate }, "tick": func(a, b directory.Row) bool { return a.TickP99 > b.TickP99 },
		"late": func(a, b directory.Row) bool { return a.LateP99 > b.LateP99 }, "overruns": func(a, b directory.Row) bool { return a.Overruns > b.Overruns },
		"age": func(a, b directory.Row) bool { return a.Age > b.Age },
	}
	rapid.Check(t, func(t *rapid.T) {
		for _, key := range slices.Sorted(maps.Keys(less)) {
			pages(t, key, less[key])
		}
	})
}

// pages checks the pages of rooms that are sorted by a key.
func pages(t *rapid.T, key string, less func(a, b directory.Row) bool) {
	few := rapid.IntRange(0, 3)
	var rows []directory.Row
	kind := rapid.SampledFrom([]string{"", "table", "lobby"})
	want := map[string]directory.Row{}
	query := url.Values{"limit": {fmt.Sprint(rapid.IntRange(1, 7).Draw(t, "limit"))}}
	if key != "" {
		query.Set("sort", key)
	}
	only, ofKind := kind.Draw(t, "kind asked for"), rapid.Bool().Draw(t, "of a kind")
	if ofKind {
		query.Set("kind", only)
	}
	for i := range rapid.IntRange(0, 20).Draw(t, "rooms") {
		r := directory.Row{
			Name: fmt.Sprintf("%d-%d", few.Draw(t, "n"), i), Kind: kind.Draw(t, "kind"), Clients: few.Draw(t, "n"), Seats: few.Draw(t, "n"),
			Rate: float64(few.Draw(t, "n")), TickP99: time.Duration(few.Draw(t, "n")), LateP99: time.Duration(few.Draw(t, "n")),
			Overruns: uint64(few.Draw(t, "n")), Age: time.Duration(few.Draw(t, "n")), Max: i,
		}
		if rows = append(rows, r); !ofKind || r.Kind == only {
			want[r.Name] = r
		}
	}
	var got []directory.Row
	for {
		q, err := directory.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		p := q.Select(slices.Clone(rows))
		if p.Total != len(want) || p.Offset != len(got) || p.Rooms == nil {
			t.Fatalf("page %+v, want %d rooms in all", p, len(want))
		}
		if got = append(got, p.Rooms...); p.Next == 0 {
			break
		}
		query.Set("offset", fmt.Sprint(p.Next))
	}
	for i, r := range got {
		if want[r.Name] != r {
			t.Fatalf("%+v is listed, or twice", r)
		}
		delete(want, r.Name)
		if i > 0 && (less(r, got[i-1]) || !less(got[i-1], r) && r.Max < got[i-1].Max) {
			t.Fatalf("%+v stands after %+v", r, got[i-1])
		}
	}
	if len(want) > 0 {
		t.Fatalf("not listed: %v", want)
	}
}

// A page is bounded, and an invalid query is an error.
func TestQueriesAreBounded(t *testing.T) {
	for query, fits := range map[string]bool{
		"": true, "limit=1": true, "limit=1000": true, "limit=1001": false, "limit=0": false, "limit=x": false,
		"offset=0": true, "offset=-1": false, "offset=x": false, "offset=9000000": true, "sort=late": true, "sort=best": false,
	} {
		v, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		q, err := directory.ParseQuery(v)
		if (err == nil) != fits {
			t.Errorf("%q: %v", query, err)
		}
		if err == nil && len(q.Select(make([]directory.Row, 2000)).Rooms) > q.Limit {
			t.Errorf("%q gives more than %d rooms", query, q.Limit)
		}
	}
	if q, _ := directory.ParseQuery(url.Values{}); q.Limit != 100 {
		t.Errorf("a page has %d rooms", q.Limit)
	}
}
