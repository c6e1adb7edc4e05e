package directory

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Row describes one room for operators, at /rooms of the admin listener.
type Row struct {
	Name    string  `json:"name"`    // empty for an unnamed default room
	Kind    string  `json:"kind"`    // of the room; empty for the default room
	State   string  `json:"state"`   // open, closing or hung
	Clients int     `json:"clients"` // clients that have joined
	Seats   int     `json:"seats"`   // seats taken by these and by clients being admitted
	Max     int     `json:"max"`     // largest number of clients
	Locked  bool    `json:"locked"`  // no new client is admitted without a ticket
	Rate    float64 `json:"rate_hz"` // configured rate
	// Figures of the ticks since the room was opened. The percentiles are rounded up by a fifth at
	// most.
	Ticks    uint64        `json:"ticks"`       // ticks that ran
	Overruns uint64        `json:"overruns"`    // ticks longer than the period
	Dropped  uint64        `json:"dropped"`     // ticks that were due and never ran
	TickP50  time.Duration `json:"tick_p50_ns"` // median of durations
	TickP99  time.Duration `json:"tick_p99_ns"` // 99th percentile of durations
	LateP99  time.Duration `json:"late_p99_ns"` // 99th percentile of lateness
	Age      time.Duration `json:"age_ns"`      // since the room was opened
}

// The states of a room.
const (
	StateOpen    = "open"
	StateClosing = "closing" // no client is admitted
	StateHung    = "hung"    // the watchdog has reported a tick that does not end
)

// Page is a part of the list of rooms.
type Page struct {
	Rooms  []Row `json:"rooms"`  // in the asked order
	Total  int   `json:"total"`  // matching rooms, on all pages
	Offset int   `json:"offset"` // rows left out before the first one
	// Next is the offset of the next page, or 0 on the last page.
	Next int `json:"next"`
}

// The rows of a page.
const (
	DefaultRows = 100
	MaxRows     = 1000
)

// orders are the sort orders of rows: names from a to z, numbers from the largest.
var orders = map[string]func(a, b *Row) int{
	"opened":   func(_, _ *Row) int { return 0 }, // in the given order
	"name":     func(a, b *Row) int { return cmp.Compare(a.Name, b.Name) },
	"kind":     func(a, b *Row) int { return cmp.Compare(a.Kind, b.Kind) },
	"clients":  func(a, b *Row) int { return cmp.Compare(b.Clients, a.Clients) },
	"seats":    func(a, b *Row) int { return cmp.Compare(b.Seats, a.Seats) },
	"rate":     func(a, b *Row) int { return cmp.Compare(b.Rate, a.Rate) },
	"tick":     func(a, b *Row) int { return cmp.Compare(b.TickP99, a.TickP99) },
	"late":     func(a, b *Row) int { return cmp.Compare(b.LateP99, a.LateP99) },
	"overruns": func(a, b *Row) int { return cmp.Compare(b.Overruns, a.Overruns) },
	"age":      func(a, b *Row) int { return cmp.Compare(b.Age, a.Age) },
}

// Query selects a part of the list.
type Query struct {
	Kind          string // the rooms of one kind
	OfKind        bool   // filter by Kind
	Sort          string // a key of orders
	Offset, Limit int
}

// ParseQuery parses a query of the admin listener. The error names the permitted values.
func ParseQuery(v url.Values) (q Query, err error) {
	q = Query{Kind: v.Get("kind"), OfKind: v.Has("kind"), Sort: v.Get("sort"), Limit: DefaultRows}
	if q.Sort == "" {
		q.Sort = "opened"
	}
	if orders[q.Sort] == nil {
		return q, fmt.Errorf("sort: %.40q is none of %s", q.Sort, strings.Join(slices.Sorted(maps.Keys(orders)), ", "))
	}
	if v.Has("offset") {
		if q.Offset, err = strconv.Atoi(v.Get("offset")); err != nil || q.Offset < 0 {
			return q, fmt.Errorf("offset: %.40q is not 0 or more", v.Get("offset"))
		}
	}
	if v.Has("limit") {
		if q.Limit, err = strconv.Atoi(v.Get("limit")); err != nil || q.Limit < 1 || q.Limit > MaxRows {
			return q, fmt.Errorf("limit: %.40q is not 1 to %d", v.Get("limit"), MaxRows)
		}
	}
	return q, nil
}

// Select returns the page of rows that the query selects. It filters and sorts rows in place; equal
// rows keep their order.
func (q Query) Select(rows []Row) Page {
	if q.OfKind {
		rows = slices.DeleteFunc(rows, func(r Row) bool { return r.Kind != q.Kind })
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return orders[q.Sort](&a, &b) })
	p := Page{Total: len(rows), Offset: q.Offset}
	from := min(q.Offset, len(rows))
	to := min(from+q.Limit, len(rows))
	if p.Rooms = append([]Row{}, rows[from:to]...); to < len(rows) {
		p.Next = to
	}
	return p
}
