package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
)

// TestAPanicOfAPositionFunctionIsABadPosition: the room continues.
func TestAPanicOfAPositionFunctionIsABadPosition(t *testing.T) {
	m := &gridGame{}
	w := netlooptest.New(t, m, netlooptest.AllowPanics())
	c := play(t, w, perfect)
	s := watchBodies(c)
	w.Tick(func(tick *netloop.Tick) {
		bodies.Spawn(tick, body{N: -1})
		bodies.Spawn(tick, body{N: 7, X: 1})
	})
	w.Step(3)
	s.want(t, "no place", -1, "")
	s.want(t, "near", 7, "+")
}

func TestGridsAreCheckedInOpen(t *testing.T) {
	for want, open := range map[string]func(*netloop.Room, *netloop.Grid){
		"NewGrid: a radius of 0: use a positive distance": func(r *netloop.Room, _ *netloop.Grid) {
			netloop.NewGrid(r, netloop.GridSpec{})
		},
		"make the cells larger": func(r *netloop.Room, _ *netloop.Grid) {
			netloop.NewGrid(r, netloop.GridSpec{Radius: 100, Cell: 1})
		},
		"is less than a cell": func(r *netloop.Room, _ *netloop.Grid) {
			signs.PlaceOn(netloop.NewGrid(r, netloop.GridSpec{Radius: 100, Margin: 1}), func(*sign) (x, y, z float64) { return })
		},
		"class \"body\" is on a grid already": func(r *netloop.Room, g *netloop.Grid) {
			bodies.PlaceOn(g, func(*body) (x, y, z float64) { return })
		},
		"belongs to schema": func(_ *netloop.Room, g *netloop.Grid) {
			things.PlaceOn(g, func(*thing) (x, y, z float64) { return })
		},
	} {
		_, err := netloop.New(netloop.Config{}, &gridGame{open: open})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open: %v, want %q", err, want)
		}
	}
}

func TestPlaceOnNeedsAGridAndAFunction(t *testing.T) {
	for name, call := range map[string]func(*netloop.Grid){
		"no grid":     func(*netloop.Grid) { bodies.PlaceOn(nil, func(*body) (x, y, z float64) { return }) },
		"no function": func(g *netloop.Grid) { bodies.PlaceOn(g, nil) },
	} {
		var said any
		_, _ = netloop.New(netloop.Config{}, &gridGame{open: func(_ *netloop.Room, g *netloop.Grid) {
			defer func() { said = recover() }()
			call(g)
		}})
		if !strings.Contains(fmt.Sprint(said), `Class.PlaceOn: class "body" needs a grid`) {
			t.Errorf("%s: %v", name, said)
		}
	}
}

func TestViewsAreChecked(t *testing.T) {
	m := &gridGame{}
	w := netlooptest.New(t, m)
	c := play(t, w, perfect)
	panics := func(tick *netloop.Tick, from ...netloop.Viewpoint) (said string) {
		defer func() { said = fmt.Sprint(recover()) }()
		m.grid.SetView(tick, server(t, tick, c), from...)
		return ""
	}
	w.Tick(func(tick *netloop.Tick) {
		if said := panics(tick, make([]netloop.Viewpoint, netloop.MaxViewpoints+1)...); !strings.Contains(said, "9 viewpoints: use at most 8") {
			t.Errorf("too many: %s", said)
		}
		if said := panics(tick, netloop.ViewFrom(signs.Spawn(tick, sign{}))); !strings.Contains(said, `class "sign" is not on this grid`) {
			t.Errorf("not on the grid: %s", said)
		}
	})
}
