// Package embednats adds a NATS server to a program with the command line of package app, for its
// flag --cluster embed. A main function imports it for this effect, and grows by 10 MB:
//
//	import _ "github.com/netloop/netloop/app/embednats"
package embednats

import (
	"github.com/netloop/netloop/app/internal/embedded"
	"github.com/netloop/netloop/cluster/nats/embed"
)

func init() { //nolint:gochecknoinits // A blank import has no other effect.
	embedded.Start = func(c embedded.Config) (url string, stop func(), err error) {
		s, err := embed.Start(embed.Config{
			Dir: c.Dir, Listen: c.Listen, Name: c.Name, Routes: c.Routes, RoutesListen: c.RoutesListen, User: c.User, Password: c.Password,
		})
		if err != nil {
			return "", nil, err
		}
		return s.URL(), s.Close, nil
	}
}
