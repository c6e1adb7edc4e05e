package limits_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/netloop/netloop/client" // It fills in inside.Client, and netloop inside.Netloop.
	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/limits"
	"github.com/netloop/netloop/internal/logging"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/net/admission"
	"github.com/netloop/netloop/internal/net/inproc"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/net/udpbatch"
	"github.com/netloop/netloop/internal/net/wsnet"
	"github.com/netloop/netloop/internal/net/wtnet"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/slowtick"
	"github.com/netloop/netloop/internal/testing/golden"
	"github.com/netloop/netloop/internal/token"
	"github.com/netloop/netloop/internal/tracedump"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/internal/watchdog"
	"github.com/netloop/netloop/internal/watchfile"
	"github.com/netloop/netloop/internal/web"
)

const (
	page  = "../../docs/LIMITS.md"
	begin = "<!-- Generated from bounds.go of each package: make limits -->\n"
	end   = "<!-- End of the generated part. -->\n"
)

// headings are those of the page's sections, each with its subject.
var headings = [limits.NumParts][2]string{
	limits.Door:      {"Admission", "Connections before and during admission."},
	limits.Session:   {"A session", "Data that one client sends, and its pending work."},
	limits.Queues:    {"Queues of the tick", "Data that waits for the tick, and the share that one tick runs."},
	limits.State:     {"State", "Objects, and their records for clients."},
	limits.Answers:   {"Answers", "Data that waits for sending to a client."},
	limits.Operation: {"Operation", "The loop and its observers: recordings, the admin listener, metrics, traces, the log."},
	limits.Client:    {"A client of the Go package", "Limits of a client on itself. Its `Stats` count the drops."},
}

// packages lists the page's packages, and their order within a section: first the bounds that a
// program configures, then the order of a packet's path.
func packages() []func() limits.Table {
	return []func() limits.Table{
		bridge.Netloop.Bounds, bridge.Client.Bounds,
		udpbatch.Bounds, quicnet.Bounds, wtnet.Bounds, wsnet.Bounds, inproc.Bounds, admission.Bounds, token.Bounds, transport.Bounds, rpcqueue.Bounds, input.Bounds, netvar.Bounds, room.Bounds,
		loop.Bounds, recording.Bounds, watchdog.Bounds, admin.Bounds, web.Bounds, metrics.Bounds, slowtick.Bounds, tracedump.Bounds,
		panicguard.Bounds, logging.Bounds, watchfile.Bounds,
	}
}

// all calls fn for every limit, in the order of the page.
func all(fn func(limits.Part, limits.Limit)) {
	for part := range limits.NumParts {
		for _, bounds := range packages() {
			for _, l := range bounds()[part] {
				fn(part, l)
			}
		}
	}
}

// docs/LIMITS.md has the values of the constants, and "make limits" writes it.
func TestEveryLimitIsDocumented(t *testing.T) {
	golden.CheckPart(t, page, begin, end, markdown())
}

// markdown has a section with a table for each part.
func markdown() string {
	var b strings.Builder
	last := limits.NumParts
	all(func(p limits.Part, l limits.Limit) {
		if p != last {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", headings[p][0], headings[p][1])
			b.WriteString("| limit | default | unit | configuration | counter | when it is reached |\n|---|---|---|---|---|---|\n")
			last = p
		}
		config := "fixed"
		if l.Config != "" {
			config = quoted(l.Config)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", l.Name, limits.Written(l.Default), l.Unit, config, quoted(l.Counter), l.Full)
	})
	return b.String() + "\n"
}

// quoted formats a list of names for the page.
func quoted(names string) string {
	if names == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(names, ", ", "`, `") + "`"
}

// A package that has limits is on the page.
func TestEveryPackageWithLimitsIsOnThePage(t *testing.T) {
	listed := 0
	for _, pattern := range []string{"../../*.go", "../../*/bounds.go", "../*/bounds.go", "../*/*/bounds.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		listed += len(slices.DeleteFunc(found, func(p string) bool { return filepath.Base(p) != "bounds.go" }))
	}
	if n := len(packages()); n != listed {
		t.Errorf("%d packages have a bounds.go, and %d are on the page: add the missing one to packages", listed, n)
	}
}

// A row names its quantity, its bound and the behaviour at the bound, and no row is repeated.
func TestLimitsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	rows := 0
	all(func(p limits.Part, l limits.Limit) {
		rows++
		name := fmt.Sprint(p, l.Name)
		if l.Name == "" || l.Full == "" || seen[name] {
			t.Errorf("%+v: a limit has a name of its own, and says what happens when it is reached", l)
		}
		seen[name] = true
		switch d := l.Default.(type) {
		case int, float64, limits.Bytes, limits.Text, time.Duration:
			if reflect.ValueOf(d).IsZero() {
				t.Errorf("%s: the bound is missing", l.Name)
			}
		default:
			t.Errorf("%s: a bound is an int, a float64, Bytes, a time.Duration or a Text, not a %T", l.Name, d)
		}
		if strings.Contains(l.Name+l.Unit+l.Full+limits.Written(l.Default), "|") {
			t.Errorf("%s: a | would end a cell of the table", l.Name)
		}
	})
	if rows < 90 {
		t.Errorf("the page has %d limits", rows)
	}
}
