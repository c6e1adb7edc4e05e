package admin

import (
	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/limits"
)

// Bounds are the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Operation: {
		{
			Name: "how long `/loop` and `/explain` wait for the room", Default: askTimeout, Full: "answered 503",
		},
		{
			Name: "connections of the admin listener", Default: maxConns, Unit: "connections",
			Counter: `netloop_admin_refusals_total{reason="connection"}`, Full: "the one that has been quiet for longest is closed",
		},
		{
			Name: "… pages made at once, beside `/healthz` and `/readyz`", Default: maxPages, Unit: "pages",
			Counter: `netloop_admin_refusals_total{reason="busy"}`, Full: "answered 503",
		},
		{
			Name:    "… its tokens (`--admin-token-file`)",
			Default: limits.Say("%v, in a file of %v", maxTokens, limits.Bytes(maxFile)),
			Unit:    "tokens of " + limits.Written(minToken) + " characters or more",
			Full:    "refused at the start; later the old ones remain in use",
		},
		{
			Name: "… rooms of a page", Default: directory.DefaultRows, Unit: "rooms, by `limit=` up to " + limits.Written(directory.MaxRows),
			Full: "the others on the next page",
		},
		{
			Name: "… profiles", Default: maxProfile, Full: "answered 400",
		},
	}}
}
