package web

import (
	"github.com/netloop/netloop/internal/limits"
	"github.com/netloop/netloop/internal/net/admission"
)

// Bounds are the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Operation: {
		{
			Name: "connections of the page server (`--web`), WebSockets aside", Default: MaxConns, Unit: "connections",
			Counter: `netloop_web_connections_refused_total{reason="full"}`, Full: "one of the site with the most is closed: the one that has been quiet for longest, or has its answer for longest where a site is at least two larger by such",
		},
		{
			Name: "… of one site", Default: maxPerSite, Unit: "connections",
			Counter: `netloop_web_connections_refused_total{reason="full"}`, Full: "one of the site that is quiet is closed, or else the newcomer",
		},
		{
			Name: "… new ones of a site, and of all", Default: admission.TollRates(MaxConns), Unit: "a second",
			Counter: `netloop_web_connections_refused_total{reason="rate"}`, Full: "closed before TLS",
		},
		{
			Name: "… bytes read from one, of a WebSocket included", Default: limits.Say("%v, at once %v", limits.Bytes(readRate), limits.Bytes(readBurst)), Unit: "a second",
			Full: "the other bytes wait at the sender",
		},
		{
			Name: "… a request, header and all", Default: limits.Bytes(maxHeader), Full: "answered 431",
		},
		{
			Name: "… the time for a request", Default: readTimeout, Full: "closed",
		},
		{
			Name: "… the time for an answer", Default: writeTimeout, Full: "closed",
		},
		{
			Name: "… files of the game's `Web`", Default: maxFiles, Unit: "files",
			Full: "the server does not start",
		},
		{
			Name: "… all of them together", Default: limits.Bytes(maxFileBytes), Full: "the server does not start",
		},
	}}
}
