// Package ts embeds the client for browsers, so that every server with pages can serve it: a page
// then has the client that fits its server, and a game needs no npm.
package ts

import _ "embed" // for the file below

// Client is the client as one file, an ECMAScript module. "make web" builds it.
//
//go:embed dist/netloop.js
var Client []byte
