package netloop

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// Zero fields of a configuration get their defaults, and other fields are kept.
func TestAConfigurationIsCompleted(t *testing.T) {
	got, err := Config{}.validate()
	if err != nil {
		t.Fatal(err)
	}
	if got.Seed == 0 || got.Log == nil || got.LogsDropped == nil || got.LogsDropped() != 0 {
		t.Errorf("seed %d, log %v, and %d lines were dropped", got.Seed, got.Log, got.LogsDropped())
	}
	other, err := Config{}.validate()
	if err != nil || other.Seed == got.Seed {
		t.Errorf("two servers draw the seed %d: %v", got.Seed, err)
	}
	got.Seed, got.Log, got.LogsDropped = 0, nil, nil
	want := Config{
		Listen: "127.0.0.1:4433", MaxRooms: 1024, MaxClients: 10_000, AdmitTimeout: 5 * time.Second, LostAfter: 5 * time.Second, Watchdog: 10 * time.Second,
		Room: RoomSpec{
			Rate: Hz(60), FixedRate: Hz(60), SendEvery: 1, MaxClients: 256, Budget: 11_000,
			KeepDropped: 20 * time.Second, MaxRewind: 250 * time.Millisecond, Duplicate: DuplicateTakeOver, CloseEmpty: NeverClose,
		},
		RPC: RPCLimits{PerSecond: 1000, Burst: 2000, KickAfter: 10_000, Budget: 4096, Share: 0.5, ClientShare: 0.05, Answers: 256},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the defaults are %+v, want %+v", got, want)
	}
	said := Config{
		Listen: "[::1]:1", MaxRooms: 2, MaxClients: 3, AdmitTimeout: 4, LostAfter: 6 * time.Second, Watchdog: 7 * time.Second, Seed: 8,
		Log: got.Log, LogsDropped: func() uint64 { return 9 },
		Room: RoomSpec{
			Rate: Hz(30), FixedRate: Hz(50), SendEvery: 2, MaxClients: 5, Budget: 12,
			KeepDropped: -1, MaxRewind: -1, Duplicate: DuplicateRefuse, CloseEmpty: time.Minute,
		},
		RPC: RPCLimits{PerSecond: 1, Burst: 2, KickAfter: 3, Budget: 4, Share: 0.25, ClientShare: 0.125, Answers: 5},
	}
	if got, err = said.validate(); err != nil || got.LogsDropped() != 9 {
		t.Fatal(err)
	}
	got.Log, got.LogsDropped, said.LogsDropped = nil, nil, nil
	if !reflect.DeepEqual(got, said) {
		t.Errorf("%+v has become %+v", said, got)
	}
	if got, err = (Config{Room: RoomSpec{Rate: Hz(30)}}).validate(); err != nil || got.Room.FixedRate != Hz(30) {
		t.Errorf("fixed steps run at %v: %v", got.Room.FixedRate, err)
	}
}

// bounded is a key of a configuration with its extreme valid values, and the first invalid ones.
type bounded struct {
	key          string
	fits, beyond []Config
}

// keys are the bounded keys of a configuration.
func keys() []bounded {
	const hour = time.Hour
	of := func(specs ...RoomSpec) (all []Config) {
		for _, s := range specs {
			all = append(all, Config{Room: s})
		}
		return all
	}
	rpc := func(limits ...RPCLimits) (all []Config) {
		for _, l := range limits {
			all = append(all, Config{RPC: l})
		}
		return all
	}
	long := func(n int) string { return strings.Repeat("x", n) }
	return []bounded{
		{"Offline", []Config{{Offline: true}, {Web: "localhost:0"}, {CertFile: "x", KeyFile: "x"}}, []Config{{Offline: true, Web: "x"}, {Offline: true, CertFile: "x", KeyFile: "x"}}},
		{"Secret", []Config{{Secret: make([]byte, 32)}}, []Config{{Secret: make([]byte, 31)}, {Secret: make([]byte, 1)}}},
		{"CertFile", nil, []Config{{CertFile: "x"}, {KeyFile: "x"}}},
		{"MaxRooms", []Config{{MaxRooms: 1}, {MaxRooms: 100_000}}, []Config{{MaxRooms: -1}, {MaxRooms: 100_001}}},
		{"MaxClients", []Config{{MaxClients: 1}, {MaxClients: 100_000}}, []Config{{MaxClients: -1}, {MaxClients: 100_001}}},
		{"AdmitTimeout", []Config{{AdmitTimeout: 1}}, []Config{{AdmitTimeout: -1}}},
		{"LostAfter", []Config{{LostAfter: time.Second}}, []Config{{LostAfter: time.Second - 1}, {LostAfter: -1}}},
		{"DrainTimeout", []Config{{DrainTimeout: 1}}, []Config{{DrainTimeout: -1}}},
		{"Watchdog", []Config{{Watchdog: 100 * time.Millisecond}, {Watchdog: -1}}, []Config{{Watchdog: 100*time.Millisecond - 1}, {Watchdog: 1}}},

		{"Auth.Audience", []Config{{Auth: Auth{Keys: "k", Audience: "a"}}}, []Config{{Auth: Auth{Keys: "k"}}, {Auth: Auth{Audience: "a"}}}},
		{"Auth.Insecure", nil, []Config{{Auth: Auth{Keys: "k", Audience: "a", Insecure: true}}}},
		{"Listen", []Config{
			{Listen: ":1", Auth: Auth{Insecure: true}}, {Listen: ":1", Auth: Auth{Keys: "k", Audience: "a"}}, {Listen: "127.0.0.1:1", Auth: Auth{Insecure: true}},
		}, []Config{{Listen: ":1"}, {Listen: ":1", Web: ":2"}}},
		{"WebURL", []Config{
			{Web: "127.0.0.1:1", WebURL: "https://play.example.org", Auth: Auth{Insecure: true}, WebProxies: []string{"127.0.0.1"}},
		}, []Config{{WebURL: "https://play.example.org"}, {Web: "127.0.0.1:1", WebURL: "https://play.example.org"}}},
		{"WebProxies", nil, []Config{{Web: "127.0.0.1:1", WebProxies: []string{"127.0.0.1"}}}},
		{"Web", []Config{
			{Web: ":1", Auth: Auth{Insecure: true}}, {Web: ":1", Auth: Auth{Keys: "k", Audience: "a"}}, {Web: "127.0.0.1:1"},
		}, []Config{{Web: ":1"}, {Web: "0.0.0.0:1", WebTLS: true}, {Web: "play.example.org:1"}}},

		{"Room.Rate", of(RoomSpec{Rate: Hz(1000)}), of(RoomSpec{Rate: Hz(1001)})},
		{"Room.FixedRate", of(RoomSpec{FixedRate: Hz(1000)}), of(RoomSpec{FixedRate: Hz(1001)})},
		{"Room.Budget", of(RoomSpec{Budget: 1}, RoomSpec{Budget: 1 << 20}), of(RoomSpec{Budget: -1}, RoomSpec{Budget: 1<<20 + 1})},
		{"Room.KeepDropped", of(RoomSpec{KeepDropped: hour}), of(RoomSpec{KeepDropped: hour + 1})},
		{"Room.MaxRewind", of(RoomSpec{MaxRewind: time.Second}), of(RoomSpec{MaxRewind: time.Second + 1})},
		{"Room.CloseEmpty", of(RoomSpec{CloseEmpty: hour}, RoomSpec{CloseEmpty: NeverClose}), of(RoomSpec{CloseEmpty: hour + 1})},
		{"Room.Duplicate", of(RoomSpec{Duplicate: DuplicateAllow}), of(RoomSpec{Duplicate: DuplicateAllow + 1})},
		{"Room.SendEvery", of(RoomSpec{SendEvery: 60}), of(RoomSpec{SendEvery: -1}, RoomSpec{SendEvery: 61})},
		{"Room.MaxClients", of(RoomSpec{MaxClients: 1}, RoomSpec{MaxClients: 10_000}), of(RoomSpec{MaxClients: -1}, RoomSpec{MaxClients: 10_001})},
		{"Room.MaxSpectators", of(RoomSpec{MaxSpectators: 10_000}), of(RoomSpec{MaxSpectators: -1}, RoomSpec{MaxSpectators: 10_001})},
		{"Room.Code", of(RoomSpec{Private: true, Code: long(64)}), of(RoomSpec{Private: true, Code: long(65)}, RoomSpec{Private: true, Code: "a@b"}, RoomSpec{Code: "x"})},
		{"Room.Name", of(RoomSpec{Name: long(256)}), of(RoomSpec{Name: long(257)})},
		{"Room.Kind", of(RoomSpec{Kind: long(64)}), of(RoomSpec{Kind: long(65)})},

		{"RPC.PerSecond", rpc(RPCLimits{PerSecond: -1}, RPCLimits{PerSecond: 1e6}, RPCLimits{PerSecond: 1.0 / 3600}),
			rpc(RPCLimits{PerSecond: -2}, RPCLimits{PerSecond: 1e6 + 1}, RPCLimits{PerSecond: 1.0 / 3601})},
		{"RPC.Burst", rpc(RPCLimits{Burst: 1}, RPCLimits{Burst: 65_536}), rpc(RPCLimits{Burst: -1}, RPCLimits{Burst: 65_537})},
		{"RPC.KickAfter", rpc(RPCLimits{KickAfter: -1}, RPCLimits{KickAfter: 1 << 20}), rpc(RPCLimits{KickAfter: -2}, RPCLimits{KickAfter: 1<<20 + 1})},
		{"RPC.Budget", rpc(RPCLimits{Budget: -1}, RPCLimits{Budget: 1 << 20}), rpc(RPCLimits{Budget: -2}, RPCLimits{Budget: 1<<20 + 1})},
		{"RPC.Share", rpc(RPCLimits{Share: -1}, RPCLimits{Share: 0.001}, RPCLimits{Share: 1}), rpc(RPCLimits{Share: 0.0009}, RPCLimits{Share: 1.001}, RPCLimits{Share: -0.5})},
		{"RPC.ClientShare", rpc(RPCLimits{ClientShare: -1}, RPCLimits{ClientShare: 0.001}, RPCLimits{ClientShare: 1}),
			rpc(RPCLimits{ClientShare: 0.0009}, RPCLimits{ClientShare: 1.001}, RPCLimits{ClientShare: -0.5})},
		{"RPC.Answers", rpc(RPCLimits{Answers: 1}, RPCLimits{Answers: 65_536}), rpc(RPCLimits{Answers: -1}, RPCLimits{Answers: 65_537})},
	}
}

// The bounds of a configuration are exact, and a value out of bounds is an error that names the
// key.
func TestAConfigurationIsBounded(t *testing.T) {
	for _, k := range keys() {
		for _, c := range k.fits {
			if _, err := c.validate(); err != nil {
				t.Errorf("%s: %v", k.key, err)
			}
		}
		for _, c := range k.beyond {
			if _, err := c.validate(); err == nil || !strings.HasPrefix(err.Error(), k.key+": ") {
				t.Errorf("%s: %.200s has the error %v", k.key, fmt.Sprintf("%+v", c), err)
			}
		}
	}
}

// A reservation is bounded, too, and zero is one seat for half a minute.
func TestAReservationIsBounded(t *testing.T) {
	res, err := Reservation{Spectator: true}.complete()
	if err != nil || res.Seats != 1 || res.TTL != 30*time.Second || !res.Spectator || res.Params != nil {
		t.Errorf("nothing said reserves %+v: %v", res, err)
	}
	text := func(n int) string { return strings.Repeat("x", n-2) } // JSON adds the quotes.
	for _, v := range []Reservation{{Seats: 1}, {Seats: 10_000}, {TTL: 1}, {TTL: time.Hour}, {Params: text(16 << 10)}} {
		res, err := v.complete()
		if err != nil || v.Seats != 0 && res.Seats != v.Seats || v.TTL != 0 && res.TTL != v.TTL || (res.Params != nil) != (v.Params != nil) {
			t.Errorf("%d seats for %v are %d for %v: %v", v.Seats, v.TTL, res.Seats, res.TTL, err)
		}
	}
	for _, v := range []Reservation{{Seats: -1}, {Seats: 10_001}, {TTL: -1}, {TTL: time.Hour + 1}, {Params: text(16<<10 + 1)}, {Params: func() {}}} {
		if _, err := v.complete(); err == nil {
			t.Errorf("%d seats for %v can be had", v.Seats, v.TTL)
		}
	}
}

// The limits of messages are converted to the units of a room's queue, and the connection's limits
// have room for the permitted messages.
func TestLimitsOfMessagesReachTheQueue(t *testing.T) {
	const second = time.Second
	limits := RPCLimits{PerSecond: 10, Burst: 20, KickAfter: 30, Budget: 40, Share: 0.5, ClientShare: 0.25}
	want := rpcqueue.Limits{
		Sender: rpcqueue.Bucket{PerSecond: 10, Burst: 20}, Kick: 30, Budget: 40, Time: second / 2, SenderTime: second / 4,
	}
	if got := limits.queue(second); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	limits.Budget, limits.KickAfter, limits.Share, limits.ClientShare, limits.Dry = -1, -1, -1, -1, true
	want = rpcqueue.Limits{Sender: want.Sender, Dry: true}
	if got := limits.queue(second); got != want {
		t.Errorf("without bounds: %+v, want %+v", got, want)
	}
	limits.PerSecond = -1
	if got := limits.queue(second); got != (rpcqueue.Limits{Dry: true}) || limits.link(second) != (transport.Limits{}) {
		t.Errorf("without a rate: %+v, and on the link %+v", got, limits.link(second))
	}
	if got := limits.arrivals(); got != 256+20 {
		t.Errorf("%d arrivals may wait", got)
	}
	d := transport.DefaultLimits
	times := func(n int) transport.Limits {
		by := func(r transport.Rate) transport.Rate {
			return transport.Rate{PerSecond: n * r.PerSecond, Burst: n * r.Burst}
		}
		return transport.Limits{Datagrams: by(d.Datagrams), Frames: by(d.Frames), Bytes: by(d.Bytes)}
	}
	for _, c := range []struct {
		limits RPCLimits
		times  int
	}{
		{RPCLimits{PerSecond: 1000, Burst: 2000}, 1}, {RPCLimits{PerSecond: 1, Burst: 1}, 1},
		{RPCLimits{PerSecond: 3000, Burst: 2000}, 3}, {RPCLimits{PerSecond: 1000, Burst: 8000}, 4},
	} {
		if got := c.limits.link(second); got != times(c.times) {
			t.Errorf("%+v: the link has %+v, want %d times the usual", c.limits, got, c.times)
		}
	}
}
