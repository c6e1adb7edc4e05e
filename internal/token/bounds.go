package token

import "github.com/netloop/netloop/internal/limits"

// Bounds returns the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Door: {
		{
			Name: "a token", Default: limits.Bytes(MaxToken),
			Counter: "netloop_tokens_total", Full: "refused (`CODE_UNAUTHENTICATED`)",
		},
		{
			Name: "how long a token is valid", Default: MaxLifetime, Unit: "from its use on",
			Counter: "netloop_tokens_total", Full: "refused (`CODE_UNAUTHENTICATED`)",
		},
		{
			Name: "ids of used tokens", Default: maxSpent, Unit: "ids, about 4 MiB together, each until it has expired",
			Counter: `netloop_tokens_total{outcome="busy"}, netloop_token_ids`, Full: "refused (`CODE_BUSY`)",
		},
		{
			Name: "public keys that sign tokens (`--auth-keys`)", Default: limits.Say("%v, of %v each", maxKeys, limits.Bytes(maxKeyFile)), Unit: "keys",
			Counter: `netloop_auth_key_reloads_total{outcome="failed"}`,
			Full:    "not read; the earlier ones remain in use",
		},
	}}
}
