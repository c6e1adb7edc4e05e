// Package ts embeds the client for browsers, so that every server with pages can serve it: a page
// then has the client that fits its server, and a game needs no npm.
package ts

import (
	"embed"
	"io/fs"
)

// Client is the client as one file, an ECMAScript module. "make web" builds it.
//
//go:embed dist/netloop.js
var Client []byte

//go:embed dist/netloop.js dist/netgraph.js dist/protobuf.js
var dist embed.FS

// Files are the modules of the client for pages: netloop.js, and the optional netgraph.js and
// protobuf.js.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // The folder is embedded.
	}
	return files
}
