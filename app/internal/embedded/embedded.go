// Package embedded connects package app with a NATS server inside of the program, which only
// programs that import app/embednats contain.
package embedded

// Config describes the NATS server.
type Config struct {
	Dir            string // folder of its data
	Listen         string // address for servers of the game; empty is a free port of this machine
	Name           string // its name among those of Routes
	Routes         []string
	RoutesListen   string
	User, Password string
}

// Start starts a NATS server, and returns its URL and a function that ends it. Nil: the program
// contains none.
var Start func(Config) (url string, stop func(), err error)
