package app

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// value returns a key's line in the output of the config command.
func value(t *testing.T, printed, key string) string {
	t.Helper()
	for line := range strings.Lines(printed) {
		if name, rest, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && name == key {
			return rest
		}
	}
	t.Fatalf("no line %q in\n%s", key, printed)
	return ""
}

func TestFlagsWinOverEnvironmentOverFileOverDefaults(t *testing.T) {
	file := write(t, "game.yaml", "send-every: 2\nshooter:\n  bots: 10\n  round-time: 2m\n  title: File\n")
	other := write(t, "other.yaml", "shooter.bots: 11\n")
	great := write(t, "great.yaml", "seed: 18446744073709551615\n")
	for _, tt := range []struct {
		name      string
		env, args []string
		key, want string
	}{
		{"default of an option", nil, nil, "send-every", "1"},
		{"default that the game's struct has", nil, nil, "bots", "4"},
		{"default of a tag", nil, nil, "title", "A game"},
		{"file", nil, []string{"--config", file}, "send-every", "2 # " + file},
		{"file, the game's", nil, []string{"--config", file}, "bots", "10 # " + file},
		{"file with a flat key", nil, []string{"--config", other}, "bots", "11 # " + other},
		{"file named by the environment", []string{"NETLOOP_CONFIG=" + file}, nil, "round-time", "2m # " + file},
		{"file named by flag and environment", []string{"NETLOOP_CONFIG=" + file}, []string{"--config", other}, "bots", "11 # " + other},
		{"environment", []string{"NETLOOP_SEND_EVERY=3"}, nil, "send-every", "3 # NETLOOP_SEND_EVERY"},
		{"environment, the game's", []string{"NETLOOP_SHOOTER_ROUND_TIME=3m"}, nil, "round-time", "3m # NETLOOP_SHOOTER_ROUND_TIME"},
		{"environment over file", []string{"NETLOOP_SHOOTER_BOTS=12"}, []string{"--config", file}, "bots", "12 # NETLOOP_SHOOTER_BOTS"},
		{"flag over file", nil, []string{"--config", file, "--shooter.bots=13"}, "bots", "13 # --shooter.bots"},
		{"flag over all", []string{"NETLOOP_SHOOTER_BOTS=12"}, []string{"--config", file, "--shooter.bots", "13"}, "bots", "13 # --shooter.bots"},
		{"flag that repeats the default", []string{"NETLOOP_SHOOTER_BOTS=12"}, []string{"--shooter.bots", "4"}, "bots", "4 # --shooter.bots"},
		{"a bad value that loses", []string{"NETLOOP_SHOOTER_BOTS=many"}, []string{"--shooter.bots", "5"}, "bots", "5 # --shooter.bots"},
		{"empty is a value", []string{"NETLOOP_ADMIN="}, nil, "admin", `"" # NETLOOP_ADMIN`},
		{"a boolean flag needs no value", nil, []string{"--shooter.friendly"}, "friendly", "true # --shooter.friendly"},
		{"a rate", nil, []string{"--tick-rate", "30000/1001"}, "tick-rate", "30000/1001 # --tick-rate"},
		{"the greatest number, from a file", nil, []string{"--config", great}, "seed", "18446744073709551615 # " + great},
		{"a rate with its unit", nil, []string{"--tick-rate", "50 Hz"}, "tick-rate", "50 # --tick-rate"},
		{"a type that reads its own text", nil, []string{"--shooter.level", "hard"}, "level", "hard # --shooter.level"},
		{"others' variables", []string{"NETLOOPS=1", "BOTS=9", "netloop_send_every=9", "BROKEN"}, nil, "send-every", "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := command(t, newGame(), tt.env, append([]string{"config"}, tt.args...)...)
			if r.exit != 0 || r.stderr != "" {
				t.Fatalf("exit %d: %s", r.exit, r.stderr)
			}
			if got := value(t, r.stdout, tt.key); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Every error of a configuration is one line that names the key in the operator's spelling, and the
// remedy.
func TestBadConfigurationIsOneLine(t *testing.T) {
	file := func(text string) []string { return []string{"--config", write(t, "bad.yaml", text)} }
	for _, tt := range []struct {
		name      string
		env, args []string
		want      []string
	}{
		{"unknown flag", nil, []string{"--tikc-rate", "30"}, []string{"--tikc-rate is not a flag: did you mean --tick-rate?"}},
		{"unknown flag, half a name", nil, []string{"--bots=3"}, []string{"--bots is not a flag: did you mean --shooter.bots?"}},
		{"unknown flag, like nothing", nil, []string{"--qwertyuiop"}, []string{"--qwertyuiop is not a flag (--help lists them)"}},
		{"unknown short flag", nil, []string{"-x"}, []string{"-x is not a flag"}},
		{"flag without value", nil, []string{"--listen"}, []string{"--listen has no value: write --listen=VALUE"}},
		{"flag without name", nil, []string{"--=3"}, []string{"bad flag syntax"}},
		{"flag, not a number", nil, []string{"--shooter.bots", "many"}, []string{`--shooter.bots: "many" cannot be used: use a whole number` + "\n"}},
		{"flag, out of its type", nil, []string{"--shooter.lives", "256"}, []string{`--shooter.lives: "256" cannot be used: use a whole number from 0 to 255`}},
		{"flag, not finite", nil, []string{"--shooter.max-speed", "Inf"}, []string{"--shooter.max-speed", "use a number"}},
		{"flag, no duration", nil, []string{"--for", "20"}, []string{`--for: "20" cannot be used: use a duration such as`}},
		{"flag, no boolean", nil, []string{"--shooter.friendly=maybe"}, []string{"use true or false"}},
		{"flag, own text", nil, []string{"--shooter.level", "hell"}, []string{`--shooter.level: "hell" cannot be used: use easy or hard`}},
		{"flag, line break", nil, []string{"--shooter.bots", "1\n2\x1b[31m"}, []string{"--shooter.bots"}},
		{"rate of nothing", nil, []string{"--tick-rate", "0"}, []string{"--tick-rate: 0 cannot be used: use 1 to 1000 Hz"}},
		{"rate too high", nil, []string{"--tick-rate", "1001"}, []string{"--tick-rate", "use 1 to 1000 Hz"}},
		{"rate too low", nil, []string{"--fixed-rate", "1/2"}, []string{"--fixed-rate", "use 1 to 1000 Hz"}},
		{"rate of huge parts", nil, []string{"--tick-rate", "18446744073709551615/18446744073709551615"}, []string{"--tick-rate"}},
		{"rate over nothing", nil, []string{"--tick-rate", "60/0"}, []string{"--tick-rate"}},
		{"rate with a point", nil, []string{"--tick-rate", "29.97"}, []string{"a fraction such as 30000/1001"}},
		{"sends never", nil, []string{"--send-every", "0"}, []string{"--send-every: 0 cannot be used: use 1 to 60"}},
		{"too many clients", nil, []string{"--max-clients", "10001"}, []string{"--max-clients: 10001 cannot be used: use 1 to 10000"}},
		{"no rate for clients", nil, []string{"--client-rate", "0"}, []string{"--client-rate: 0 cannot be used: use 1 to 1000000, or -1"}},
		{"no burst for clients", nil, []string{"--client-burst", "0"}, []string{"--client-burst: 0 cannot be used: use 1 to 65536"}},
		{"kick before anything", nil, []string{"--client-kick", "0"}, []string{"--client-kick: 0 cannot be used"}},
		{"past ticks of hours", nil, []string{"--inspect-ring", "1h"}, []string{"--inspect-ring: 1h0m0s cannot be used: use a time up to 10m"}},
		{"past ticks without the inspector", nil, []string{"--inspect-ring", "1s", "--admin", ""}, []string{"--inspect-ring: 1s cannot be used: set admin too"}},
		{"kept for ever", nil, []string{"--keep-dropped", "61m"}, []string{"--keep-dropped: 1h1m0s cannot be used: use a time up to 1h"}},
		{"kept for less than nothing", nil, []string{"--keep-dropped", "-1s"}, []string{"--keep-dropped: -1s"}},
		{"looks back for ever", nil, []string{"--max-rewind", "1001ms"}, []string{"--max-rewind: 1.001s cannot be used: use a time up to 1s"}},
		{"looks ahead", nil, []string{"--max-rewind", "-1ms"}, []string{"--max-rewind: -1ms"}},
		{"lost at once", nil, []string{"--lost-after", "999ms"}, []string{"--lost-after: 999ms cannot be used: use 1s or more"}},
		{"strange datagrams", nil, []string{"--datagrams", "tcp"}, []string{`--datagrams: "tcp" cannot be used: use auto or quic`}},
		{"a strange policy", nil, []string{"--same-player", "kick"}, []string{`--same-player: "kick" cannot be used: use take-over, refuse or allow`}},
		{"negative time", nil, []string{"--for", "-1s"}, []string{"--for: -1s"}},
		{"negative drain", nil, []string{"--drain", "-1s"}, []string{"--drain: -1s"}},
		{"address without port", nil, []string{"--listen", "localhost"}, []string{`--listen: "localhost" cannot be used: use host:port`}},
		{"address with a bad port", nil, []string{"--admin", "localhost:65536"}, []string{"--admin", "use host:port"}},
		{"empty address", nil, []string{"--listen", ""}, []string{`--listen: "" cannot be used`}},
		{"log level", []string{"NETLOOP_LOG_LEVEL=loud"}, nil, []string{`NETLOOP_LOG_LEVEL: "loud" cannot be used: use debug, info, warn or error`}},
		{"log format", nil, []string{"--log-format", "xml"}, []string{"--log-format", "use text or json"}},
		{"key without certificate", nil, []string{"--tls-key", "k"}, []string{"--tls-key", "set tls-cert too"}},
		{"certificate without key", nil, []string{"--tls-cert", "c"}, []string{"--tls-cert", "set tls-key too"}},
		{"environment", []string{"NETLOOP_SHOOTER_BOTS=many"}, nil, []string{`NETLOOP_SHOOTER_BOTS: "many" cannot be used`}},
		{"file that is not there", nil, []string{"--config", filepath.Join(t.TempDir(), "none.yaml")}, []string{"--config: cannot read", "name an existing file"}},
		{"file that is a folder", nil, []string{"--config", t.TempDir()}, []string{"config: cannot use"}},
		{"file, not YAML", nil, file("a: b: c"), []string{"config: cannot use", "bad.yaml"}},
		{"file, a list", nil, file("- 1\n- 2"), []string{"config: cannot use", "bad.yaml"}},
		{"file, a key twice", nil, file("listen: a\nlisten: b\n"), []string{"already defined"}},
		{"file, unknown key", nil, file("listne: 127.0.0.1:0\n"), []string{"bad.yaml: listne is not a key of this file: did you mean listen?"}},
		{"file, unknown key of the game", nil, file("shooter:\n  bosts: 1\n"), []string{"bad.yaml: shooter.bosts is not a key", "did you mean shooter.bots?"}},
		{"file, unknown section", nil, file("arena: {rocks: 3}\n"), []string{"bad.yaml: arena.rocks is not a key"}},
		{"file, a section for a value", nil, file("listen: {a: b}\n"), []string{"bad.yaml: listen.a is not a key"}},
		{"file, a value for a section", nil, file("shooter: 3\n"), []string{"bad.yaml: shooter is not a key"}},
		{"file that names a file", nil, file("config: x.yaml\n"), []string{"bad.yaml: config is not a key"}},
		{"file, no value", nil, file("listen:\n"), []string{"bad.yaml: listen", "give it a value"}},
		{"file, bad value", nil, file("shooter: {bots: 1.5}\n"), []string{`bad.yaml: shooter.bots: "1.5" cannot be used: use a whole number`}},
		{"file, a list for a value", nil, file("shooter: {bots: [1, 2]}\n"), []string{"bad.yaml: shooter.bots", "write one value"}},
		{"file, number for text", nil, file("shooter: {title: 007}\n"), []string{"bad.yaml: shooter.title", "in quotes"}},
		{"file, date for text", nil, file("shooter: {title: 2026-01-02}\n"), []string{"bad.yaml: shooter.title", "in quotes"}},
		{"one word too many", nil, []string{"now"}, []string{`unexpected argument "now"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, sub := range []string{"config", "run"} {
				r := command(t, newGame(), tt.env, append([]string{sub}, tt.args...)...)
				if r.exit != 2 || r.stdout != "" {
					t.Errorf("%s: exit %d, want 2 and nothing on stdout: %q", sub, r.exit, r.stdout)
				}
				oneLineOf(t, r.stderr, append(tt.want, "server: ")...)
			}
		})
	}
}

func TestUnknownCommandIsOneLine(t *testing.T) {
	r := command(t, newGame(), nil, "rnu")
	if r.exit != 2 {
		t.Errorf("exit %d", r.exit)
	}
	oneLineOf(t, r.stderr, `"rnu" is not a command: did you mean run?`)
}

func TestHelpAboutNoCommandIsOneLine(t *testing.T) {
	r := command(t, newGame(), nil, "help", "rnu")
	if r.exit != exitUsage || r.stdout != "" {
		t.Errorf("exit %d, stdout %q", r.exit, r.stdout)
	}
	oneLineOf(t, r.stderr, `"rnu" is not a command: did you mean run?`)
	if r = command(t, newGame(), nil, "help", "loop", "print"); r.exit != exitOK || !strings.Contains(r.stdout, "--dot") {
		t.Errorf("exit %d, stdout %q", r.exit, r.stdout)
	}
}

// Kubernetes sets variables such as NETLOOP_PORT that are not settings.
func TestUnknownVariablesOnlyWarn(t *testing.T) {
	r := command(t, newGame(), []string{"NETLOOP_PORT=tcp://10.0.0.1:80", "NETLOOP_SHOOTER_BOST=3"}, "config")
	if r.exit != 0 {
		t.Errorf("exit %d", r.exit)
	}
	lines(t, r.stderr, "server: environment variable NETLOOP_PORT is not a setting and is ignored\n"+
		"server: environment variable NETLOOP_SHOOTER_BOST is not a setting and is ignored: did you mean NETLOOP_SHOOTER_BOTS?\n")
}

func TestSectionWhoseLinesAreCommentedOut(t *testing.T) {
	for _, text := range []string{"shooter:\n#  bots: 3\n", "shooter: {}\n", "# nothing\n", ""} {
		if r := command(t, newGame(), nil, "config", "--config", write(t, "c.yaml", text)); r.exit != 0 {
			t.Errorf("%q: exit %d: %s", text, r.exit, r.stderr)
		}
	}
}

// The output of the config command is a file that sets the same values.
func TestPrintedConfigurationIsAFile(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := settingsStruct{
			Bots:     rapid.Int().Draw(rt, "bots"),
			MaxSpeed: rapid.Float64().Draw(rt, "speed"),
			Friendly: rapid.Bool().Draw(rt, "friendly"),
			Round:    time.Duration(rapid.Int64().Draw(rt, "round")),
			Title:    rapid.StringOf(rapid.RuneFrom([]rune("ab 1:#'\"\\\n\t-{}[]é\u2028"))).Draw(rt, "title"),
			Lives:    rapid.Uint8().Draw(rt, "lives"),
			Level:    level(rapid.IntRange(0, 1).Draw(rt, "level")),
		}
		first := want
		first.Title, first.Lives = "x", 1 // Zero would take the tag's default.
		g := &game{schema: shooter, config: &first}
		a, err := newConfiguration(g)
		if err != nil {
			rt.Fatal(err)
		}
		first = want
		var b strings.Builder
		if err := a.print(&b); err != nil {
			rt.Fatal(err)
		}
		got := settingsStruct{}
		r := command(t, &game{schema: shooter, config: &got}, nil, "config", "--config", write(t, "c.yaml", b.String()))
		if r.exit != 0 {
			rt.Fatalf("%s in\n%s", r.stderr, b.String())
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(settingsStruct{})); diff != "" {
			rt.Errorf("%s from\n%s", diff, b.String())
		}
	})
}

// Any configuration file is used, or refused in one line.
func FuzzConfigFile(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte) {
		r := command(t, newGame(), nil, "config", "--config", write(t, "c.yaml", string(text)))
		switch r.exit {
		case 0:
			if again := command(t, newGame(), nil, "config", "--config", write(t, "again.yaml", r.stdout)); again.exit != 0 {
				t.Errorf("printed what it does not read: %s", again.stderr)
			}
		case 2:
			oneLineOf(t, r.stderr, "server: ")
		default:
			t.Errorf("exit %d", r.exit)
		}
	})
}
