package docs

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/match"
	"github.com/netloop/netloop/persist"
)

// options are the options that a limit may name.
var options = map[string]any{
	"CatchUp": netloop.CatchUp, "Limit": netloop.Limit, "LimitPerTick": netloop.LimitPerTick, "Timeout": netloop.Timeout,
	"client.Extrapolate": client.Extrapolate,
}

// configured are the types whose fields and methods a limit may name.
var configured = map[string]reflect.Type{
	"Client":            reflect.TypeFor[*netloop.Client](),
	"Config":            reflect.TypeFor[netloop.Config](),
	"Reservation":       reflect.TypeFor[netloop.Reservation](),
	"RPCLimits":         reflect.TypeFor[netloop.RPCLimits](),
	"RoomSpec":          reflect.TypeFor[netloop.RoomSpec](),
	"client.Config":     reflect.TypeFor[client.Config](),
	"match.Config":      reflect.TypeFor[match.Config[int]](),
	"match.QueueConfig": reflect.TypeFor[match.QueueConfig[int]](),
	"persist.Config":    reflect.TypeFor[persist.Config[int]](),
	"client.Reconnect":  reflect.TypeFor[client.Reconnect](),
}

// The configuration that a limit names exists: a field, a method, an option or a flag.
func TestLimitsNameTheirConfiguration(t *testing.T) {
	help := read(t, "../app/testdata/help.txt") // as the server prints it
	is := func(name string) (is bool) {
		switch {
		case name == "fixed":
			return true
		case strings.HasPrefix(name, "--"):
			return strings.Contains(help, "  "+name+" ")
		}
		i := strings.LastIndex(name, ".")
		if i < 0 || options[name] != nil {
			return options[name] != nil
		}
		switch typ := configured[name[:i]]; {
		case typ == nil:
			return false
		case typ.Kind() == reflect.Struct:
			_, is = typ.FieldByName(name[i+1:])
		default:
			_, is = typ.MethodByName(name[i+1:])
		}
		return is
	}
	for _, l := range limits(t) {
		each(l.config, func(name string) {
			if !is(name) {
				t.Errorf("%s: there is no %s", l.name, name)
			}
		})
	}
}

// The counter of a limit is a series that a server serves, or a queue and a reason of its drops.
func TestLimitsNameTheirCounter(t *testing.T) {
	code := sources(t)
	labels, drops := families(t), reasons(t, code)
	series := regexp.MustCompile(`^(netloop_\w+)(?:\{(\w+)=("[^"]+")\})?$`)
	for _, l := range limits(t) {
		each(l.counter, func(name string) {
			switch m := series.FindStringSubmatch(name); {
			case m == nil:
				if !drops[name] {
					t.Errorf("%s: netloop_queue_drops_total has no %s", l.name, name)
				}
			case labels[m[1]] == nil:
				t.Errorf("%s: docs/METRICS.md has no %s", l.name, m[1])
			case m[2] != "" && (!labels[m[1]][m[2]] || !strings.Contains(code, m[3])):
				t.Errorf("%s: the series has no label %s, or nothing counts as %s", l.name, m[2], m[3])
			}
		})
	}
}

// families returns the labels of each family of series, from the page that is generated from the
// table of internal/metrics.
func families(t *testing.T) map[string]map[string]bool {
	t.Helper()
	labels := map[string]map[string]bool{}
	row := regexp.MustCompile("(?m)^\\| `(netloop_\\w+)` \\| \\w+ \\| (.*?) \\|")
	for _, m := range row.FindAllStringSubmatch(read(t, "METRICS.md"), -1) {
		labels[m[1]] = map[string]bool{}
		each(m[2], func(label string) { labels[m[1]][strings.Trim(label, "`")] = true })
	}
	return labels
}

// reasons returns the queues and reasons of drops: those that the transport lists, and the pairs in
// the code that counts them.
func reasons(t *testing.T, code string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	new(transport.Stats).Drops(func(queue, reason string, _ uint64) { found[queue+"/"+reason] = true })
	pair := regexp.MustCompile(`\b(?:Drops\.Add|f\.Set)\([^"\n]*"(\w+)", "(\w+)"\)`)
	for _, m := range pair.FindAllStringSubmatch(code, -1) {
		found[m[1]+"/"+m[2]] = true
	}
	asks := regexp.MustCompile(`\bmayAsk\("(\w+)"`)
	for _, m := range asks.FindAllStringSubmatch(code, -1) {
		found[m[1]+"/too_often"] = true
	}
	return found
}

// sources returns the code of package netloop and of the packages below internal, without tests.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"../*.go", "../internal/*/*.go", "../internal/*/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				all.WriteString(read(t, file))
			}
		}
	}
	return all.String()
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// each calls fn for every name of a list.
func each(names string, fn func(name string)) {
	for name := range strings.SplitSeq(names, ", ") {
		if name != "" {
			fn(name)
		}
	}
}
