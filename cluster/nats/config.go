package nats

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/netloop/netloop/cluster"
)

// Config describes the connection of a server to its cluster.
type Config struct {
	// URL is the address of NATS, several ones separated by commas: nats://a:4222,nats://b:4222.
	URL string
	// Name separates clusters that share NATS: letters, digits, - and _, at most 64. Empty is
	// netloop. All servers of a cluster have the same.
	Name string
	// Credentials is a file with a user's JWT and key, as nsc makes it. Empty is none; a name and
	// password, or a token, may be part of the URL.
	Credentials string
	// NKey is a file with the seed of a user's key, as nk makes it. Empty is none.
	NKey string
	// TLS is the configuration of TLS. Nil is none, unless the URL begins with tls://.
	TLS *tls.Config
	// Replicas is the number of NATS servers that keep the names, 1, 3 or 5. Zero is 3, or 1 if
	// NATS is a single server. It counts when the first server makes the store.
	Replicas int
	// Beat is the interval of heartbeats; zero is [cluster.Beat]. It is for tests, which cannot
	// wait for long. All servers of a cluster have the same.
	Beat time.Duration
	// Log gets rare events. Nil is none.
	Log *slog.Logger
}

// complete returns the configuration with its defaults.
func (c Config) complete() (Config, error) {
	c.Name = cmp.Or(c.Name, "netloop")
	c.Beat = cmp.Or(c.Beat, cluster.Beat)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	switch {
	case c.URL == "":
		return c, fmt.Errorf("cluster/nats: Config.URL is empty: use nats://host:4222")
	case (cluster.Server{ID: c.Name}).Check() != nil:
		return c, fmt.Errorf("cluster/nats: Config.Name %q: use 1 to 64 letters, digits, - and _", c.Name)
	case c.Credentials != "" && c.NKey != "":
		return c, fmt.Errorf("cluster/nats: Config.NKey %q: use it without Config.Credentials, which have a key", c.NKey)
	case c.Beat < 10*time.Millisecond || c.Beat > cluster.Beat:
		return c, fmt.Errorf("cluster/nats: Config.Beat %v: use 0 for %v", c.Beat, cluster.Beat)
	case c.Replicas != 0 && c.Replicas != 1 && c.Replicas != 3 && c.Replicas != 5:
		return c, fmt.Errorf("cluster/nats: Config.Replicas %d: use 0, 1, 3 or 5", c.Replicas)
	}
	return c, nil
}
