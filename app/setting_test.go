package app

import (
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/netloop/netloop"
)

func TestFieldsBecomeSettings(t *testing.T) {
	all, err := settingsOf("shooter", newGame().config)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, s := range all {
		got.WriteString(strings.Join([]string{s.key, s.env, s.kind(), s.text(), s.help}, " | ") + "\n")
	}
	lines(t, got.String(), `shooter.bots | NETLOOP_SHOOTER_BOTS | int | 4 | bots, 0 to 64
shooter.max-speed | NETLOOP_SHOOTER_MAX_SPEED | float | 2.5 | units per second
shooter.friendly | NETLOOP_SHOOTER_FRIENDLY | bool | false | whether friends can be hit
shooter.round-time | NETLOOP_SHOOTER_ROUND_TIME | duration | 1m30s | length of a round
shooter.title | NETLOOP_SHOOTER_TITLE | string | A game | `+`
shooter.lives | NETLOOP_SHOOTER_LIVES | uint | 3 | `+`
shooter.level | NETLOOP_SHOOTER_LEVEL | level | easy | `+`
`)
}

func TestTheStructsValueWinsOverTheTagsDefault(t *testing.T) {
	cfg := &settingsStruct{Lives: 9}
	if _, err := settingsOf("shooter", cfg); err != nil {
		t.Fatal(err)
	}
	if cfg.Lives != 9 || cfg.Title != "A game" {
		t.Errorf("got %+v", cfg)
	}
}

func TestNamesInKebabCase(t *testing.T) {
	for name, want := range map[string]string{"Rocks": "rocks", "MaxSpeed": "max-speed", "HTTPPort": "http-port", "TLS": "tls", "X2Y": "x2-y", "ID": "id"} {
		if got := kebab(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// A mistake in a game's settings is reported in one line.
func TestConfigsThatCannotBeSettings(t *testing.T) {
	type same struct {
		A int `name:"a-b"`
		B int `name:"a_b"`
	}
	for _, tt := range []struct {
		name   string
		schema *netloop.Schema
		config any
		want   string
	}{
		{"no pointer", shooter, settingsStruct{}, "return a pointer to a struct"},
		{"nil", shooter, nil, "return a pointer to a struct"},
		{"nil pointer", shooter, (*settingsStruct)(nil), "return a pointer to a struct"},
		{"type", shooter, &struct{ Names []string }{}, "field Names of"},
		{"interface", shooter, &struct{ Any any }{}, "field Any of"},
		{"name", shooter, &struct {
			A int `name:"a b"`
		}{}, "cannot be a flag"},
		{"default", shooter, &struct {
			A int `default:"x"`
		}{}, `default:"x" cannot be used: use a whole number`},
		{"same variable", shooter, &same{}, "both NETLOOP_SHOOTER_A_B"},
		{"same flag", shooter, &struct {
			A int `name:"x"`
			B int `name:"x"`
		}{}, "both NETLOOP_SHOOTER_X"},
		{"schema's name", untidy, &struct{ A int }{}, "use letters, digits"},
		{"schema's name is a flag", taken, &struct{ A int }{}, "rename the schema"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := command(t, &game{schema: tt.schema, config: tt.config}, nil)
			if r.exit != 2 {
				t.Errorf("exit %d", r.exit)
			}
			oneLineOf(t, r.stderr, tt.want)
		})
	}
}

// A rate's text parses to the same rate, and netloop accepts every rate that can be written.
func TestRates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		den := rapid.Uint64Range(1, 2000).Draw(t, "den")
		want := rate{rapid.Uint64Range(den, den*maxRate).Draw(t, "num"), den}
		var got rate
		if err := got.UnmarshalText([]byte(want.String())); err != nil || got != want {
			t.Errorf("%v: got %v, %v", want, got, err)
		}
	})
	for _, r := range []rate{{1, 1}, {maxRate, 1}, {30000, 1001}} {
		cfg := netloop.Config{Room: netloop.RoomSpec{Rate: netloop.Rate(r), SendEvery: maxSendEvery, MaxClients: maxClients}}
		if _, err := netloop.New(cfg, newGame()); err != nil {
			t.Error(err)
		}
	}
}

func TestDurationsAreShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64().Draw(t, "d"))
		if got, err := time.ParseDuration(shortDuration(d)); err != nil || got != d {
			t.Errorf("%v became %q", d, shortDuration(d))
		}
	})
	for d, want := range map[time.Duration]string{0: "0s", time.Hour: "1h", 90 * time.Minute: "1h30m", 20 * time.Minute: "20m", 100 * time.Second: "1m40s"} {
		if got := shortDuration(d); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// The server takes each setting of deploy/host, and warns about none.
func TestTheSettingsOfOneMachineAreTaken(t *testing.T) {
	text, err := os.ReadFile("../deploy/host/mygame.env")
	if err != nil {
		t.Fatal(err)
	}
	var env []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			env = append(env, line)
		}
	}
	r := command(t, newGame(), env, "config")
	if r.exit != 0 || r.stderr != "" || !strings.Contains(r.stdout, "\nweb-url: https://play.example.org # NETLOOP_WEB_URL\n") || len(env) < 10 {
		t.Errorf("exit %d, %d settings: %s\n%s", r.exit, len(env), r.stderr, r.stdout)
	}
}
