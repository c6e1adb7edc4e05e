package main

import (
	"bytes"
	"errors"
	"flag"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/netloop/netloop/bench/tun"
	"github.com/netloop/netloop/internal/netem"
)

// A short run over one path prints its seed, and a row of each transport with the server's rate.
func TestSnapshotsCrossAnEmulatedPath(t *testing.T) {
	if l, err := tun.Open(netem.Spec{}, 1); err != nil {
		t.Skip("this program may have no hosts: ", err) // Package tun's tests tell errors apart.
	} else {
		l.Close()
	}
	var out, about bytes.Buffer
	args := []string{"path", "-links", "rtt=40ms", "-bytes", "900", "-clients", "2", "-window", "1s", "-warmup", "500ms", "-shared=false", "-seed", "7"}
	if err := run(t.Context(), args, &out, &about); err != nil {
		t.Fatal(err, about.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "seed 7,") {
		t.Fatalf("%q", out.String())
	}
	for i, over := range []string{"auto", "quic"} {
		row := strings.Fields(lines[2+i])
		if len(row) < 7 || row[0] != "rtt=40ms" || row[1] != over || row[2] != "900" {
			t.Fatalf("%q", out.String())
		}
		busy := strings.Contains(lines[2+i], "NO FIGURE")
		if packets, err := strconv.ParseFloat(row[3], 64); err != nil || packets < 900 || packets > 2000 {
			t.Errorf("%s: packets of %v bytes, %v", over, packets, err)
		}
		if rate, err := strconv.ParseFloat(row[4], 64); err != nil || !busy && (rate < 30 || rate > 62) {
			t.Errorf("%s: %v Hz, %v", over, rate, err)
		}
	}
}

func TestImpossiblePathsAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"-links fog":            `"fog" has no value`,
		"-bytes 0":              `"0" cannot be used`,
		"-bytes 10241":          `use 1 to 10240`,
		"-transport tcp":        `"tcp" cannot be used: use quic`,
		"-clients 101":          "-clients of 1 to 100",
		"-window 999ms":         "a -window of 1s or more",
		"now":                   "no word besides",
		"-nope":                 "path -help lists the flags",
		"-links rtt=9m,loss=5%": "rtt",
	} {
		if _, err := parsePath(strings.Fields(args), new(bytes.Buffer)); !errors.Is(err, errUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"path", "-help"}, &out, &out); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "-links") {
		t.Errorf("%v: %s", err, out.String())
	}
}

func TestSharesAreThoseOfTheClients(t *testing.T) {
	bulk := tun.Flow{Protocol: 6, Port: 80}
	before := tun.Counts{Bytes: map[tun.Flow]uint64{{Protocol: 17, Port: 1}: 100}}
	after := tun.Counts{Bytes: map[tun.Flow]uint64{{Protocol: 17, Port: 1}: 150, {Protocol: 17, Port: 2}: 70, bulk: 900, {}: 5}}
	if got := sharesOf(before, after, bulk); !slices.Equal(got, []uint64{70, 50}) {
		t.Error(got)
	}
}

// A client that takes the share of TCP or of other clients is reported, unless its row has no
// figure.
func TestUnfairSharesAreReported(t *testing.T) {
	const bandwidth = 2e6
	beside, crowd := crossing{clients: 1, beside: true}, crossing{clients: 8}
	for _, row := range []struct {
		name string
		c    crossing
		r    crossed
		want bool
	}{
		{"TCP keeps its share", beside, crossed{tcp: 0.4 * bandwidth}, true},
		{"TCP keeps less", beside, crossed{tcp: 0.39 * bandwidth}, false},
		{"no figure", beside, crossed{note: "busy"}, true},
		{"equal clients", crowd, crossed{shares: []uint64{20, 15, 10}}, true},
		{"unequal clients", crowd, crossed{shares: []uint64{21, 15, 10}}, false},
		{"a client without bytes", crowd, crossed{shares: []uint64{21, 0}}, false},
	} {
		if got := row.r.fair(row.c, bandwidth); got != row.want {
			t.Errorf("%s: fair %v", row.name, got)
		}
	}
}
