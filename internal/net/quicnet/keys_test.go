package quicnet

import "testing"

// The keys of a listener are derived from its secret, one for each purpose; without a secret they
// differ at each start.
func TestKeysAreDerivedFromTheSecret(t *testing.T) {
	keys := func(secret string) (all [2][32]byte) {
		h := serve(t, func(c *ServerConfig) { c.Secret = []byte(secret) })
		return [2][32]byte{*h.listener.transport.StatelessResetKey, *h.listener.transport.TokenGeneratorKey}
	}
	first := keys("one")
	if first != keys("one") {
		t.Error("the same secret makes other keys")
	}
	if other := keys("two"); first[0] == first[1] || first[0] == other[0] || first[1] == other[1] {
		t.Error("two secrets, or two purposes, have one key")
	}
	if drawn := keys(""); drawn == keys("") || drawn[0] == drawn[1] {
		t.Error("without a secret nothing is drawn")
	}
}
