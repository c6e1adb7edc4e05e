package loadtest

import (
	"fmt"
	"os"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/spf13/pflag"

	"github.com/netloop/netloop/internal/spelling"
)

// maxConfig bounds the file of --config: all flags together take less.
const maxConfig = 1 << 20

// configure sets flags from the YAML file of --config: names without dashes, and lists for those
// that may be repeated. Flags of the command line win.
func configure(file string, flags *pflag.FlagSet) error {
	if file == "" {
		return nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return badFlag("config", file, err.Error())
	}
	if info.Size() > maxConfig {
		return badFlag("config", file, fmt.Sprintf("it has %d bytes, at most %d", info.Size(), maxConfig))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return badFlag("config", file, err.Error())
	}
	all, err := yaml.Parser().Unmarshal(text)
	if err != nil {
		return badFlag("config", file, err.Error())
	}
	for _, name := range sortedKeys(all) {
		f := flags.Lookup(name)
		if f == nil || name == "config" || name == "help" {
			return badFlag("config", file, fmt.Sprintf("%q is no flag%s", name, suggest(name, flags)))
		}
		if f.Changed {
			continue
		}
		for _, x := range values(all[name]) {
			if err := flags.Set(name, x); err != nil {
				return badFlag("config", file, fmt.Sprintf("%s: %q is no value of --%s", name, x, name))
			}
		}
	}
	return nil
}

// values returns the texts of a YAML value: those of a list, of a map as NAME=TEXT, or its own.
func values(x any) (all []string) {
	switch x := x.(type) {
	case []any:
		for _, one := range x {
			all = append(all, fmt.Sprint(one))
		}
	case map[string]any:
		for _, name := range sortedKeys(x) {
			all = append(all, fmt.Sprintf("%s=%v", name, x[name]))
		}
	default:
		all = append(all, fmt.Sprint(x))
	}
	return all
}

// suggest returns ", did you mean --NAME?" for the flag that is nearest to a mistyped one.
func suggest(wrote string, flags *pflag.FlagSet) string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if best := spelling.Nearest(wrote, names); best != "" {
		return ", did you mean --" + best + "?"
	}
	return ""
}
