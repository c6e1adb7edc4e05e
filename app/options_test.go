package app

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
)

// Each option is accepted up to its bounds, and refused by its name beyond.
func TestOptionsHaveBounds(t *testing.T) {
	for _, c := range []struct {
		key  string
		set  func(o *options, n int)
		good []int
		bad  []int
	}{
		{"send-every", func(o *options, n int) { o.SendEvery = n }, []int{1, 60}, []int{0, 61}},
		{"max-clients", func(o *options, n int) { o.MaxClients = n }, []int{1, 10_000}, []int{0, 10_001}},
		{"client-budget", func(o *options, n int) { o.ClientBudget = n }, []int{1, 1 << 20}, []int{0, 1<<20 + 1}},
		{"client-rate", func(o *options, n int) { o.ClientRate = float64(n) }, []int{-1, 1, 1_000_000}, []int{-2, 0, 1_000_001}},
		{"client-burst", func(o *options, n int) { o.ClientBurst = n }, []int{1, 65_536}, []int{0, 65_537}},
		{"client-kick", func(o *options, n int) { o.ClientKick = n }, []int{-1, 1, 1 << 20}, []int{-2, 0, 1<<20 + 1}},
		{"for", func(o *options, n int) { o.For = time.Duration(n) }, []int{0, 1}, []int{-1}},
		{"drain", func(o *options, n int) { o.Drain = time.Duration(n) }, []int{0, 1}, []int{-1}},
		{"watchdog", func(o *options, n int) { o.Watchdog = time.Duration(n) }, []int{-1, 1e8}, []int{0, 1e8 - 1}},
		{"inspect-ring", func(o *options, n int) { o.InspectRing = time.Duration(n) }, []int{0, 1, 600e9}, []int{-1, 600e9 + 1}},
		{"keep-dropped", func(o *options, n int) { o.KeepDropped = time.Duration(n) }, []int{0, 3600e9}, []int{-1, 3600e9 + 1}},
		{"max-rewind", func(o *options, n int) { o.MaxRewind = time.Duration(n) }, []int{0, 1e9}, []int{-1, 1e9 + 1}},
		{"lost-after", func(o *options, n int) { o.LostAfter = time.Duration(n) }, []int{1e9}, []int{1e9 - 1}},
	} {
		for i, n := range append(c.good, c.bad...) {
			o := defaults()
			c.set(o, n)
			err := o.check(func(key string, _ any, _ string) error { return errors.New(key) })
			if good := i < len(c.good); good != (err == nil) || !good && err.Error() != c.key {
				t.Errorf("%s of %d: %v", c.key, n, err)
			}
		}
	}
}

// Options that need another one are refused without it.
func TestOptionsThatNeedOthers(t *testing.T) {
	for _, c := range []struct {
		set  func(o *options)
		want string
	}{
		{func(o *options) { o.WebTLS = true }, "web-tls"},
		{func(o *options) { o.WebTLS, o.Web = true, ":1" }, ""},
		{func(o *options) { o.Web = "x" }, "web"},
		{func(o *options) { o.WebURL = "https://a" }, "web-url"},
		{func(o *options) { o.WebURL, o.Web = "https://a", "127.0.0.1:1" }, ""},
		{func(o *options) { o.WebURL, o.Web = "https://a/b", "127.0.0.1:1" }, "web-url"},
		{func(o *options) { o.WebProxies, o.Web = proxies{"127.0.0.1"}, ":1" }, "web-proxies"},
		{func(o *options) { o.TLSCert = "a" }, "tls-cert"},
		{func(o *options) { o.TLSKey = "a" }, "tls-key"},
		{func(o *options) { o.TLSCert, o.TLSKey = "a", "a" }, ""},
		{func(o *options) { o.LogFormat = "json" }, ""},
		{func(o *options) { o.LogLevel = "" }, "log-level"},
		{func(o *options) { o.Datagrams = "quic" }, ""},
		{func(o *options) { o.Admin = "" }, ""},
		{func(o *options) { o.Admin, o.InspectRing = "", 1 }, "inspect-ring"},
	} {
		o := defaults()
		o.InsecureAuth = true
		c.set(o)
		got := ""
		if err := o.check(func(key string, _ any, _ string) error { return errors.New(key) }); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q is refused, want %q", o, got, c.want)
		}
	}
}

// A time of 0 is none, although 0 is the default in a RoomSpec.
func TestOptionsThatAreOffStayOff(t *testing.T) {
	o := defaults()
	on := o.server().Room
	o.KeepDropped, o.MaxRewind, o.FixedRate = 0, 0, rate{30, 1}
	off := o.server().Room
	if on.KeepDropped != 20*time.Second || on.MaxRewind != 250*time.Millisecond || on.FixedRate != netloop.Hz(60) || off.KeepDropped != -1 || off.MaxRewind != -1 || off.FixedRate != netloop.Hz(30) {
		t.Errorf("%+v and %+v", on, off)
	}
	o.Datagrams = "quic"
	if defaults().server().QUICDatagrams || !o.server().QUICDatagrams {
		t.Error("datagrams")
	}
}

// The inspector lists the folders of both kinds of recordings, each once.
func TestTheFoldersOfRecordings(t *testing.T) {
	for _, c := range []struct {
		record, rooms string
		want          []string
	}{{"", "", nil}, {"game.rec", "", []string{"."}}, {"", "rooms/", []string{"rooms"}}, {"rooms/game.rec", "./rooms", []string{"rooms"}}, {"/a/game.rec", "/b", []string{"/a", "/b"}}} {
		o := options{Record: filepath.FromSlash(c.record), RecordRooms: filepath.FromSlash(c.rooms)}
		var got []string
		for _, dir := range o.recordingDirs() {
			got = append(got, filepath.ToSlash(dir))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q and %q: %q, want %q", c.record, c.rooms, got, c.want)
		}
	}
}
