// Package starters has the games that "netloop new" copies: whole modules, except for their import
// path. They are packages of this repository, so its tests, vet and linters run on them.
//
//	blank    a dot for each player, and a coin
//	arena    inputs, prediction and lag compensation
//	cards    a lobby, tables with hidden hands and turns, saved matches
//	common   the Makefile and other files of each game
package starters

import "embed"

// Path is the import path of the starters: that of a game begins with it.
const Path = "github.com/netloop/netloop/examples/starters/"

// Files has a folder for each game, and common.
//
//go:embed blank arena cards common
var Files embed.FS
