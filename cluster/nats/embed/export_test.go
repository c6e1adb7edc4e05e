//go:build unix

package embed

// Advertise returns the configuration of a server that names another address for its routes, so
// that other servers of a test reach it by their Routes alone.
func (c Config) Advertise(addr string) Config {
	c.advertise = addr
	return c
}
