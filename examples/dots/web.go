package main

import (
	"embed"
	"io/fs"
)

//go:embed web
var page embed.FS

// Web is the game's page, which docs/GUIDE.md shows.
func (Game) Web() fs.FS {
	files, err := fs.Sub(page, "web")
	if err != nil {
		panic(err) // The folder is embedded.
	}
	return files
}
