package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop/bench/measure"
)

// section is a measured part of docs/PERFORMANCE.md.
type section struct {
	name    string
	measure func(*bench, context.Context, *bytes.Buffer) error
}

// sections are all measured parts of docs/PERFORMANCE.md. For capacities the clients share sockets
// and send together: otherwise their core would be full before the server's.
var sections = []section{
	{"machine", func(_ *bench, _ context.Context, out *bytes.Buffer) error {
		fmt.Fprintf(out, "%s, %d cores of %s, %s, %s/%s\n", time.Now().Format(time.DateOnly), runtime.NumCPU(), measure.Processor(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return nil
	}},
	{"table", func(b *bench, ctx context.Context, out *bytes.Buffer) error { return b.compare(ctx, out) }},
	{"memory", func(b *bench, ctx context.Context, out *bytes.Buffer) error { return b.memories(ctx, out) }},
	{"profile", func(b *bench, ctx context.Context, out *bytes.Buffer) error {
		b.opts.only = []arrangement{{"peers", 50}, {"peers", 200}, {"traffic", 50}, {"traffic", 200}, {"arena", 50}}
		return b.profiles(ctx, out)
	}},
	{"capacity", func(b *bench, ctx context.Context, out *bytes.Buffer) error {
		b.opts.sharing, b.opts.exact = 50, false
		b.opts.only = []arrangement{{"peers", 100}}
		for _, rate := range []int{20, 30, 60, 128} {
			b.opts.rate = rate
			if err := b.capacities(ctx, out); err != nil {
				return err
			}
		}
		return nil
	}},
}

// sectionNames returns the names of all sections, in their order.
func sectionNames() (names []string) {
	for _, s := range sections {
		names = append(names, s.name)
	}
	return names
}

// cost measures the requested sections of a page, and writes each of them when it is done,
// including sections with figures that are marked as invalid.
func (b *bench) cost(ctx context.Context, page string) error {
	opts, bad := b.opts, error(nil)
	for _, s := range sections {
		if !slices.Contains(opts.sections, s.name) {
			continue
		}
		var out bytes.Buffer
		b.opts = opts
		if err := s.measure(b, ctx, &out); errors.Is(err, errSaturated) {
			bad = err
		} else if err != nil {
			return fmt.Errorf("%s: %w\n%s", s.name, err, out.String())
		}
		if err := writeSection(page, s.name, out.String()); err != nil {
			return err
		}
	}
	return bad
}

// writeSection rewrites one section.
func writeSection(page, name, figures string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	if text, err = replaced(text, name, figures); err != nil {
		return err
	}
	return os.WriteFile(page, text, 0o600)
}

// replaced puts the figures between the two marks of a section.
func replaced(page []byte, name, figures string) ([]byte, error) {
	from, to := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	head, rest, ok := bytes.Cut(page, []byte(from))
	_, tail, closed := bytes.Cut(rest, []byte(to))
	if !ok || !closed {
		return nil, fmt.Errorf("the page has no section %q: it begins with %q and ends with %q", name, strings.TrimSpace(from), to)
	}
	block := "\n```\n" + strings.Trim(figures, "\n") + "\n```\n\n"
	return bytes.Join([][]byte{head, []byte(from), []byte(block), []byte(to), tail}, nil), nil
}
