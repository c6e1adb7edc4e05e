//go:build !linux

package quicnet

// hearRefusals has no effect except on Linux: a client detects the loss by the timeout.
func (s *socket) hearRefusals() {}

func (s *socket) earlier(error) bool { return false }
