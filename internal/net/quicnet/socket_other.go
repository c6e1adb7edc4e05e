//go:build !linux

package quicnet

// hearRefusals is for Linux: elsewhere a client notices by the silence.
func (s *socket) hearRefusals() {}

func (s *socket) takeRefusals() bool { return false }
