package netloop_test

import (
	"slices"
	"strings"
	"testing"
)

// layers: a package imports only packages of lower layers, or of its own folder. The folder of a
// layer may be within that of another one.
var layers = []string{"internal proto clients", "cluster", "internal/membership", "internal/membership/places", ".", "client", "match persist phase seats", "loadtest netlooptest app", "examples", "bench cmd deploy scripts"}

// networkImports lists the packages of the module that each package of the network may import. They
// belong to lower layers.
var networkImports = map[string]string{
	"internal/admin":         "internal/apidoc internal/connlimit internal/watchfile",
	"internal/apidoc":        "",
	"internal/connlimit":     "internal/net/endpoint",
	"internal/metrics":       "internal/loop internal/metrics/ticks internal/netvar internal/transport",
	"internal/netem":         "",
	"internal/net/admission": "internal/net/driver internal/net/endpoint internal/panicguard internal/transport proto/netloop/v1",
	"internal/net/driver":    "internal/netem internal/transport proto/netloop/v1",
	"internal/net/endpoint":  "",
	"internal/net/inproc":    "internal/net/driver internal/transport proto/netloop/v1",
	"internal/net/memnet":    "internal/netem internal/transport proto/netloop/v1",
	"internal/net/origin":    "",
	"internal/net/quicnet":   "internal/certificate internal/net/admission internal/net/driver internal/net/sealed internal/net/udpbatch internal/transport proto/netloop/v1",
	"internal/net/sealed":    "",
	"internal/net/udpbatch":  "",
	"internal/net/wsnet":     "internal/net/admission internal/net/driver internal/net/endpoint internal/net/origin internal/transport proto/netloop/v1",
	"internal/net/wtnet":     "internal/net/driver internal/net/endpoint internal/net/origin internal/net/quicnet internal/transport",
	"internal/transport":     "internal/fifo proto/netloop/v1",
	"internal/web":           "clients/ts internal/connlimit internal/net/endpoint internal/net/origin internal/web/static",
	"internal/web/static":    "",
}

// orders lists the packages of a folder from the lowest to the highest, which is the folder itself:
// a package imports only lower ones.
var orders = map[string][]string{
	"internal/codec":  {"lerp", "quat", ""},
	"internal/netvar": {"bitset", "packet", "state", "slots", "interest", "replica", ""},
}

func TestImportsPointOneWay(t *testing.T) {
	layer := func(dir string) int {
		top, _, _ := strings.Cut(dir, "/")
		if top == "" {
			top = "."
		}
		if slices.Contains(layers, dir) {
			top = dir
		}
		return slices.IndexFunc(layers, func(l string) bool { return slices.Contains(strings.Fields(l), top) })
	}
	for _, s := range parsed(t) {
		if s.test {
			continue
		}
		from := layer(s.dir)
		if from < 0 {
			t.Errorf("%s: its folder stands in no layer", s.name)
			continue
		}
		for _, p := range s.imports() {
			dir, ours := strings.CutPrefix(p, module)
			if !ours {
				continue
			}
			dir = strings.TrimPrefix(dir, "/")
			top := func(d string) string { first, _, _ := strings.Cut(d, "/"); return first }
			if to := layer(dir); to >= from && top(dir) != top(s.dir) && !(from == 0 && to == 0) {
				t.Errorf("%s imports %s, which stands above it", s.name, p)
			}
		}
	}
}

func TestNetworkPackagesImportLowerLayers(t *testing.T) {
	for _, s := range parsed(t) {
		allowed, listed := networkImports[s.dir]
		if s.test || !listed && !strings.HasPrefix(s.dir, "internal/net/") {
			continue
		}
		for _, p := range s.imports() {
			if dir, ours := strings.CutPrefix(p, module+"/"); ours && !slices.Contains(strings.Fields(allowed), dir) {
				t.Errorf("%s imports %s, which networkImports does not list", s.name, dir)
			}
		}
	}
}

func TestPackagesOfAFolderAreOrdered(t *testing.T) {
	for folder, order := range orders {
		level := func(dir string) int {
			rest, ok := strings.CutPrefix(dir+"/", folder+"/")
			if !ok {
				return -1
			}
			return slices.Index(order, strings.TrimSuffix(rest, "/"))
		}
		for _, s := range parsed(t) {
			if s.test || s.dir != folder && !strings.HasPrefix(s.dir, folder+"/") {
				continue
			}
			from := level(s.dir)
			if from < 0 {
				t.Errorf("%s: the order of %s lacks its package", s.name, folder)
			}
			for _, p := range s.imports() {
				if to := level(strings.TrimPrefix(p, module+"/")); to >= from {
					t.Errorf("%s imports %s, which is not below it", s.name, p)
				}
			}
		}
	}
}

// The examples and their commands are templates for game authors, and packages for games are built
// as those are: they prove that the public API is enough.
func TestGamesImportNoInternalPackage(t *testing.T) {
	for _, s := range parsed(t) {
		if !matches(s.dir, []string{"cmd/server", "cmd/loadclient", "examples/", "match", "persist", "persist/", "phase", "seats"}) {
			continue
		}
		for _, p := range s.imports() {
			if strings.HasPrefix(p, module+"/internal") {
				t.Errorf("%s imports %s", s.name, p)
			}
		}
	}
}

func TestProductionImportsNothingMadeForTests(t *testing.T) {
	for _, s := range parsed(t) {
		if s.test {
			continue
		}
		for _, p := range s.imports() {
			if slices.Contains(inTests, strings.TrimPrefix(p, module+"/")) {
				t.Errorf("%s imports %s, which is for tests alone", s.name, p)
			}
		}
	}
}

func TestModulesStayInTheirPlace(t *testing.T) {
	for _, s := range parsed(t) {
		if s.test {
			continue
		}
		for _, p := range s.imports() {
			for prefix, where := range onlyIn {
				if strings.HasPrefix(p, prefix) && !matches(s.dir, where) {
					t.Errorf("%s imports %s, allowed only in %q", s.name, p, where)
				}
			}
		}
	}
}
