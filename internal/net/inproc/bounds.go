package inproc

import "github.com/netloop/netloop/internal/limits"

// Bounds are the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Answers: {
		{
			Name:    "datagrams that wait for a client of the same process (`client.Config.Local`), or for its server",
			Default: maxDatagrams, Unit: "datagrams", Full: "their sender waits, and no tick",
		},
		{
			Name: "… bytes of its stream, each way", Default: limits.Bytes(maxStream), Full: "their writer waits, and no tick",
		},
		{
			Name: "… how long it takes to say hello to the room that it moves to", Default: moveTime, Full: "the connection is closed",
		},
	}}
}
