package cards

import (
	"embed"
	"io/fs"
)

// The page is built from web/src by "make web".
//
//go:embed web/index.html web/style.css web/icon.svg web/cards.js
var page embed.FS

// Web implements netloop.WebGame: the game can be played in a browser.
func (g *Game) Web() fs.FS {
	files, err := fs.Sub(page, "web")
	if err != nil {
		panic(err) // The folder is embedded.
	}
	return files
}
