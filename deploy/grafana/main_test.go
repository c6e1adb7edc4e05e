package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// The committed dashboard is the generated one, and Grafana's types read it without an unknown
// field.
func TestTheDashboardIsGenerated(t *testing.T) {
	want, err := generate("../../docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("netloop.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("netloop.json differs: make dashboard writes it")
	}
	plugins.RegisterDefaultPlugins()
	var d dashboard.Dashboard
	if err := d.UnmarshalJSONStrict(got); err != nil {
		t.Fatal(err)
	}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
	if err := d.UnmarshalJSONStrict(bytes.Replace(got, []byte(`"title"`), []byte(`"titel"`), 1)); err == nil {
		t.Error("an unknown field is accepted")
	}
}

// Ids are unique, and panels are within the grid and do not overlap.
func TestPanelsHaveTheirPlaces(t *testing.T) {
	text, err := os.ReadFile("netloop.json")
	if err != nil {
		t.Fatal(err)
	}
	plugins.RegisterDefaultPlugins()
	var d dashboard.Dashboard
	if err := d.UnmarshalJSONStrict(text); err != nil {
		t.Fatal(err)
	}
	ids, cells := map[uint32]bool{}, map[[2]uint32]string{}
	for _, p := range d.Panels {
		var title string
		var id uint32
		var at dashboard.GridPos
		if r := p.RowPanel; r != nil {
			title, id, at = *r.Title, r.Id, *r.GridPos
		} else {
			title, id, at = *p.Panel.Title, *p.Panel.Id, *p.Panel.GridPos
		}
		if ids[id] {
			t.Errorf("%q has id %d, like another panel", title, id)
		}
		ids[id] = true
		if at.W == 0 || at.H == 0 || at.X+at.W > 24 {
			t.Errorf("%q is outside of the grid: %+v", title, at)
		}
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other, ok := cells[[2]uint32{x, y}]; ok {
					t.Fatalf("%q and %q overlap", title, other)
				}
				cells[[2]uint32{x, y}] = title
			}
		}
	}
}
