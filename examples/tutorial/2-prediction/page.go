package game

import (
	"embed"
	"io/fs"
)

//go:embed web
var page embed.FS

// Web implements netloop.WebGame: the server serves the folder web as the game's page.
func (Game) Web() fs.FS {
	files, err := fs.Sub(page, "web")
	if err != nil {
		panic(err) // The folder is embedded.
	}
	return files
}
