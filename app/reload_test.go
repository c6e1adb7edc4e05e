package app

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/netloop/netloop/internal/logging"
)

// reloaded starts with a file, replaces it, reads it again, and returns the log line of the reload
// and the levels that are logged afterwards.
func reloaded(t *testing.T, before, after string, env []string, args ...string) (line, levels string) {
	t.Helper()
	file := write(t, "server.yaml", before)
	c, err := newConfiguration(newGame())
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("server", pflag.ContinueOnError)
	c.addFlags(flags)
	if err := flags.Parse(append(args, "--config", file)); err != nil {
		t.Fatal(err)
	}
	if err := c.load(flags, env); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	log, err := logging.New(logging.Config{Level: c.options.LogLevel, Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(after), 0o600); err != nil {
		t.Fatal(err)
	}
	c.reload(log)
	log.Slog().Debug("heard: debug")
	log.Slog().Info("heard: info")
	log.Slog().Warn("heard: warn")
	c.reload(log) // The file has not changed again.
	if err := log.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	said := strings.ReplaceAll(out.String(), file, "FILE")
	line, _, _ = strings.Cut(said, "\n")
	if _, text, ok := strings.Cut(line, "SIGHUP: "); ok {
		line = text
	} else {
		line = ""
	}
	for _, level := range []string{"debug", "info", "warn"} {
		if strings.Contains(said, "heard: "+level) {
			levels += level + " "
		}
	}
	if n := strings.Count(said, "log-level="); n > 1 {
		t.Errorf("the level changed %d times", n)
	}
	return line, strings.TrimSpace(levels)
}

// The effects of a changed file while the server runs.
func TestTheFileIsReadAgain(t *testing.T) {
	const unusable = `the file cannot be used, the configuration is unchanged {"error": "`
	for name, c := range map[string]struct {
		before, after string
		env, args     []string
		line, levels  string
	}{
		"quieter": {"", "log-level: warn", nil, nil,
			`the file was reloaded {"file": "FILE", "changed": "log-level=warn"}`, "warn"},
		"louder": {"log-level: warn", "log-level: debug", nil, nil,
			`the file was reloaded {"file": "FILE", "changed": "log-level=debug"}`, "debug info warn"},
		"a line that is gone": {"log-level: debug", "", nil, nil,
			`the file was reloaded {"file": "FILE", "changed": "log-level=info"}`, "info warn"},
		"others wait": {"send-every: 2", "log-level: debug\nsend-every: 3\nshooter:\n  bots: 9\n  round-time: 60s", nil, nil,
			`the file was reloaded {"file": "FILE", "changed": "log-level=debug", "changes_at_the_next_start": "send-every shooter.bots shooter.round-time"}`, "debug info warn"},
		"what says the same does not": {"shooter:\n  round-time: 60s", "shooter:\n  round-time: 1m", nil, nil,
			`the file was reloaded {"file": "FILE", "changed": ""}`, "info warn"},
		"the environment wins": {"", "log-level: warn", []string{"NETLOOP_LOG_LEVEL=debug"}, nil,
			`the file was reloaded {"file": "FILE", "changed": ""}`, "debug info warn"},
		"a flag wins": {"", "log-level: warn\nsend-every: 9", nil, []string{"--log-level=debug", "--send-every=4"},
			`the file was reloaded {"file": "FILE", "changed": ""}`, "debug info warn"},
		"no level": {"", "log-level: loud", nil, nil,
			unusable + `FILE: log-level: \"loud\" is not a level: use debug, info, warn or error"}`, "info warn"},
		"an empty one": {"", `log-level: ""`, nil, nil,
			unusable + `FILE: log-level: \"\" is not a level: use debug, info, warn or error"}`, "info warn"},
		"another key's value": {"", "log-level: debug\nmax-clients: many", nil, nil,
			unusable + `FILE: max-clients: use a whole number"}`, "info warn"},
		"an unknown key": {"", "log-level: debug\nmax-client: 3", nil, nil,
			unusable + `FILE: max-client is not a key of this file: did you mean max-clients?"}`, "info warn"},
	} {
		t.Run(name, func(t *testing.T) {
			line, levels := reloaded(t, c.before, c.after, c.env, c.args...)
			if line != c.line || levels != c.levels {
				t.Errorf("the log says\n%s\nand lets through %q; want\n%s\nand %q", line, levels, c.line, c.levels)
			}
		})
	}
}

// A reload of a server without a file changes nothing, and is logged.
func TestThereIsNoFileToReload(t *testing.T) {
	c, err := newConfiguration(newGame())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	log, err := logging.New(logging.Config{Level: "info", Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	c.reload(log)
	if err := log.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "SIGHUP: no file to reload") {
		t.Errorf("the log says %q", out.String())
	}
}
