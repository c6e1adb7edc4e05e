package app

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/netloop/netloop"
)

// configuration is the set of all settings, with the source of each value after load.
type configuration struct {
	options  *options
	settings []*setting
	warnings []string
}

// newConfiguration makes the settings of the server and of the game.
func newConfiguration(g netloop.Game) (*configuration, error) {
	c := &configuration{options: defaults()}
	all, err := settingsOf("", c.options)
	if err != nil {
		return nil, err
	}
	if p, ok := g.(netloop.RoomDefaulter); ok {
		c.settings = all
		if err := c.setRoomDefaults(p.RoomDefaults()); err != nil {
			return nil, err
		}
	}
	if own, ok := g.(interface{ Config() any }); ok {
		section := g.Schema().Name()
		if !goodName.MatchString(section) {
			return nil, fmt.Errorf("schema name %q cannot begin the names of flags: use letters, digits, - and _", section)
		}
		game, err := settingsOf(section, own.Config())
		if err != nil {
			return nil, err
		}
		all = append(all, game...)
	}
	c.settings = all
	return c, c.distinct()
}

// distinct returns an error if two settings have names that an operator could not distinguish.
func (c *configuration) distinct() error {
	taken := map[string]string{}
	for _, s := range c.settings {
		section, _, _ := strings.Cut(s.key, ".")
		if c.find(section) != nil && section != s.key {
			return fmt.Errorf("the schema's name %q is that of a flag of every server: rename the schema", section)
		}
		if other, ok := taken[s.env]; ok {
			return fmt.Errorf("settings %s and %s are both %s in the environment: rename one", other, s.key, s.env)
		}
		taken[s.env] = s.key
	}
	return nil
}

func (c *configuration) find(key string) *setting {
	for _, s := range c.settings {
		if s.key == key {
			return s
		}
	}
	return nil
}

// load sets the values. Flags take precedence over the environment, the environment over the file,
// and the file over the defaults. A value that is overridden is not parsed.
func (c *configuration) load(flags *pflag.FlagSet, environ []string) error {
	fromEnv, err := c.loadEnv(environ)
	if err != nil {
		return err
	}
	fromFlags := koanf.New(".")
	if err := fromFlags.Load(posflag.ProviderWithValue(flags, ".", nil, c.onlySettings), nil); err != nil {
		return err
	}
	path := fromEnv.String("config")
	if fromFlags.Exists("config") {
		path = fromFlags.String("config")
	}
	fromFile, err := c.loadFile(path)
	if err != nil {
		return err
	}
	merged := koanf.New(".")
	for _, source := range []*koanf.Koanf{fromFile, fromEnv, fromFlags} {
		if err := merged.Merge(source); err != nil {
			return err
		}
	}
	for _, s := range c.settings {
		s.standard = s.text()
		s.loaded = s.standard
		switch {
		case fromFlags.Exists(s.key):
			s.from = "--" + s.key
		case fromEnv.Exists(s.key):
			s.from = s.env
		case fromFile.Exists(s.key):
			s.from = path + ": " + s.key
		default:
			continue
		}
		text := merged.String(s.key)
		if err := s.parse(text); err != nil {
			return c.bad(s.key, text, err.Error())
		}
		s.loaded = s.text()
	}
	return c.options.check(c.bad)
}

// onlySettings drops flags that cobra adds, such as --help.
func (c *configuration) onlySettings(key, value string) (string, any) {
	if c.find(key) == nil {
		return "", nil
	}
	return key, value
}

// loadEnv reads the variables that begin with NETLOOP_. An unknown one is a warning only: in a
// Kubernetes namespace with a service called netloop, every container has NETLOOP_PORT and others
// that are not settings.
func (c *configuration) loadEnv(environ []string) (*koanf.Koanf, error) {
	names := make([]string, len(c.settings))
	for i, s := range c.settings {
		names[i] = s.env
	}
	k := koanf.New(".")
	err := k.Load(env.Provider(".", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			if i := slices.Index(names, name); i >= 0 {
				return c.settings[i].key, value
			}
			c.warnings = append(c.warnings, fmt.Sprintf("environment variable %s is not a setting and is ignored%s", name, suggest(name, names)))
			return "", nil
		},
	}), nil)
	return k, err
}

// loadFile reads a YAML file. An unknown key is an error: unlike an environment, the file is for
// the server alone.
func (c *configuration) loadFile(path string) (*koanf.Koanf, error) {
	values := koanf.New(".")
	if path == "" {
		return values, nil
	}
	k := koanf.New(".")
	if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
		if _, statErr := os.Stat(path); statErr != nil {
			return nil, fmt.Errorf("--config: cannot read %q: name an existing file: %w", path, err)
		}
		return nil, fmt.Errorf("--config: cannot use %q: correct it, or remove it from the command: %w", path, err)
	}
	texts := map[string]any{}
	for _, key := range k.Keys() {
		s, value := c.find(key), k.Get(key)
		if s == nil && c.empty(key, value) {
			continue
		}
		if s == nil || key == "config" {
			return nil, fmt.Errorf("%s: %s is not a key of this file%s", path, key, suggest(key, c.keys()))
		}
		text, err := s.fromYAML(value)
		if err != nil {
			return nil, netloop.ConfigError(path+": "+key, value, "%s", err)
		}
		texts[key] = text
	}
	return values, values.Load(confmap.Provider(texts, "."), nil)
}

// empty reports whether a key of the file is a section with all its lines commented out.
func (c *configuration) empty(key string, value any) bool {
	m, isMap := value.(map[string]any)
	return (value == nil || isMap && len(m) == 0) && slices.ContainsFunc(c.settings, func(s *setting) bool {
		return strings.HasPrefix(s.key, key+".")
	})
}

// keys returns the keys of a file.
func (c *configuration) keys() []string {
	var keys []string
	for _, s := range c.settings {
		if s.key != "config" {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// fromYAML turns a value of the file into the text that parse reads. A string must have been
// written as one: YAML has already turned 007 into 7.
func (s *setting) fromYAML(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case nil:
		return "", errors.New("give it a value, or remove the line")
	case bool, int, int64, uint64, float64:
		if s.kind() == "string" {
			return "", errors.New(`write it in quotes: it is text`)
		}
		if f, ok := v.(float64); ok {
			return strconv.FormatFloat(f, 'f', -1, 64), nil
		}
		return fmt.Sprint(v), nil
	}
	return "", errors.New("write one value, in quotes")
}

// bad makes the error for a value: one line with the key in the operator's spelling, or with the
// flag of a default, and the remedy.
func (c *configuration) bad(key string, value any, remedy string) error {
	key = c.written(key)
	if text, ok := value.(string); ok {
		value = strconv.Quote(text)
	}
	return netloop.ConfigError(key, value, "%s", remedy)
}

// written returns a key in the operator's spelling. For a default it is the flag to set.
func (c *configuration) written(key string) string {
	switch s := c.find(key); {
	case s == nil:
		return key
	case s.from == "":
		return "--" + key
	default:
		return s.from
	}
}

// gameError rewrites an error of the game's Open about a setting, so that it names the key in the
// operator's spelling, like errors about the server's own settings.
func (c *configuration) gameError(err error) error {
	const from = "netloop: the game's Open: "
	text, ok := strings.CutPrefix(err.Error(), from)
	key, rest, found := strings.Cut(text, ": ")
	if !ok || !found || !strings.Contains(key, ".") || c.find(key) == nil {
		return err
	}
	return fmt.Errorf("%s: %s", c.written(key), rest)
}
