package app

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/knadh/koanf/v2"

	"github.com/netloop/netloop/internal/logging"
)

// liveKeys are the settings that take effect while a server runs.
var liveKeys = []string{"log-level"}

// reloadOnHangup reads the configuration file again at each SIGHUP until stop is called. Without it
// a SIGHUP would end the process.
func (c *configuration) reloadOnHangup(log *logging.Logger) (stop func()) {
	hangups := make(chan os.Signal, 1) // Size 1: one reload reads the newest file.
	signal.Notify(hangups, syscall.SIGHUP)
	done := make(chan struct{})
	var reloads sync.WaitGroup
	reloads.Go(func() {
		for {
			select {
			case <-hangups:
				c.reload(log)
			case <-done:
				return
			}
		}
	})
	return func() {
		signal.Stop(hangups)
		close(done)
		reloads.Wait()
	}
}

// reload reads the file again and logs the result. If the file cannot be used, all settings are
// kept.
func (c *configuration) reload(log *logging.Logger) {
	path := c.options.Config
	if path == "" {
		log.Slog().Info("SIGHUP: no file to reload: the server was started without --config")
		return
	}
	texts, err := c.reread(path)
	if err != nil {
		log.Slog().Error("SIGHUP: the file cannot be used, the configuration is unchanged", "error", oneLine(err))
		return
	}
	var changed, waiting []string
	for _, s := range c.settings {
		switch text := texts[s.key]; {
		case text == s.loaded:
		case slices.Contains(liveKeys, s.key):
			changed = append(changed, s.key+"="+text)
		default:
			waiting = append(waiting, s.key)
		}
	}
	say := func() { told(log.Slog(), path, changed, waiting) }
	level := c.find("log-level")
	if quieter(texts[level.key], level.loaded) {
		say() // Log the line before the new level hides it.
		say = func() {}
	}
	_ = log.SetLevel(texts[level.key]) // The level was checked.
	level.loaded = texts[level.key]
	say()
}

// told logs the result of a reload.
func told(log *slog.Logger, path string, changed, waiting []string) {
	attrs := []any{"file", path, "changed", strings.Join(changed, " ")}
	if len(waiting) > 0 {
		attrs = append(attrs, "changes_at_the_next_start", strings.Join(waiting, " "))
	}
	log.Info("SIGHUP: the file was reloaded", attrs...)
}

// quieter reports whether a log level logs less than another.
func quieter(level, than string) bool {
	a, _ := logging.ParseLevel(level)
	b, _ := logging.ParseLevel(than)
	return a > b
}

// reread returns the text that each setting would have with the current file. It does not write to
// any setting, because the game may be reading its settings.
func (c *configuration) reread(path string) (map[string]string, error) {
	file, err := c.loadFile(path)
	if err != nil {
		return nil, err
	}
	texts := make(map[string]string, len(c.settings))
	for _, s := range c.settings {
		if texts[s.key], err = s.reread(file); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, s.key, err)
		}
	}
	return texts, nil
}

// reread returns the text that the setting has with a file. Flags and environment take precedence.
func (s *setting) reread(file *koanf.Koanf) (string, error) {
	switch {
	case strings.HasPrefix(s.from, "--"), s.from == s.env:
		return s.loaded, nil
	case !file.Exists(s.key):
		return s.standard, nil
	}
	scratch := setting{key: s.key, v: reflect.New(s.v.Type()).Elem()}
	text := file.String(s.key)
	if err := scratch.parse(text); err != nil {
		return "", err
	}
	if _, err := logging.ParseLevel(text); s.key == "log-level" && (err != nil || text == "") {
		return "", fmt.Errorf("%q is not a level: use debug, info, warn or error", text)
	}
	return scratch.text(), nil
}
