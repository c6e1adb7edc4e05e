package loadtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// A file sets flags, also those that may be repeated; the command line wins.
func TestAFileSetsFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "load.yaml")
	set := func(text string, args ...string) (o options, err error) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		flags := pflag.NewFlagSet("loadclient", pflag.ContinueOnError)
		o.flags(flags)
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		return o, configure(file, flags)
	}
	o, err := set("clients: 7\nduration: 3s\nui: quiet\nthreshold: [call.latency.p99<1s, snapshot.age.p50<9ms]\ntags: {of: a, n: 2}\n", "--clients", "9")
	if err != nil || o.clients != 9 || o.duration != 3*time.Second || o.ui != uiQuiet || o.tags["of"] != "a" || o.tags["n"] != "2" ||
		!slices.Equal(o.thresholds, []string{"call.latency.p99<1s", "snapshot.age.p50<9ms"}) {
		t.Errorf("%+v, %v", o, err)
	}
	for text, want := range map[string]string{
		"client: 7":                           `"client" is no flag, did you mean --clients?`,
		"clients: many":                       `clients: "many" is no value`,
		"config: x.yaml":                      `"config" is no flag`,
		"- a":                                 "--config",
		"a: b: c":                             "--config",
		"# " + strings.Repeat("x", maxConfig): "at most",
	} {
		if _, err := set(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
	if err := configure(file+".not", nil); err == nil {
		t.Error("a missing file is no error")
	}
}
