package history

import (
	"cmp"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/netloop/netloop/internal/recording"
)

// maxHeads bounds the files of a server's folders whose heads are read for a list, the newest ones
// first: each takes some 50 µs.
const maxHeads = 200

// Folders are the folders with the recordings of a running server. It shows no state of these
// files, because a replay takes a core: it lists them, and sends them to operators.
type Folders struct {
	// Dirs are the paths of the folders.
	Dirs []string
	// Game is the name of the game's schema. Other files are left out.
	Game string
	// RoomOf returns the name of the recorded room.
	RoomOf func(recording.Head) string
}

// SavedAnswer lists the recordings in the folders of a server.
type SavedAnswer struct {
	Files   []SavedRow `json:"files"`   // the newest first
	More    int        `json:"more"`    // older files, which may be recordings
	Folders []string   `json:"folders"` // their paths; empty: the server was started without
}

// SavedRow is a recording.
type SavedRow struct {
	Folder   int    `json:"folder"`           // index in folders
	Name     string `json:"name"`             // of the file
	Path     string `json:"path"`             // of the file on the server's machine
	Room     string `json:"room"`             // name; empty: the default room
	Kept     bool   `json:"kept"`             // it has past ticks without a replay
	Bytes    int64  `json:"bytes"`            // size so far
	Modified int64  `json:"modified_seconds"` // of the last write, since 1970
}

// List lists the recordings of the game in the folders.
func (f *Folders) List() (SavedAnswer, error) {
	a := SavedAnswer{Files: []SavedRow{}, Folders: append([]string{}, f.Dirs...)}
	var all []SavedRow
	for i, dir := range f.Dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return a, err
		}
		for _, e := range entries {
			info, err := e.Info()
			if err == nil && info.Mode().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
				all = append(all, SavedRow{Folder: i, Name: e.Name(), Path: filepath.Join(dir, e.Name()), Bytes: info.Size(), Modified: info.ModTime().Unix()})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b SavedRow) int { return cmp.Compare(b.Modified, a.Modified) })
	a.More = max(0, len(all)-maxHeads)
	for _, row := range all[:len(all)-a.More] {
		if head, err := f.head(&row); err == nil && head.Schema == f.Game {
			row.Room, row.Kept = f.RoomOf(head), head.Kept
			a.Files = append(a.Files, row)
		}
	}
	return a, nil
}

// head reads the head of a file.
func (f *Folders) head(row *SavedRow) (recording.Head, error) {
	file, err := os.OpenInRoot(f.Dirs[row.Folder], row.Name)
	if err != nil {
		return recording.Head{}, err
	}
	defer func() { _ = file.Close() }() // It was only read.
	_, b, err := recording.NewReader(file)
	if err != nil {
		return recording.Head{}, err
	}
	return recording.ReadHead(b)
}

// Open opens the recording that the parameters folder and name of a query select.
func (f *Folders) Open(query url.Values) (*os.File, error) {
	i, err := strconv.Atoi(cmp.Or(query.Get("folder"), "0"))
	name := query.Get("name")
	if err != nil || i < 0 || i >= len(f.Dirs) || name == "" || name != filepath.Base(name) || !filepath.IsLocal(name) {
		return nil, refusef(http.StatusNotFound, "there is no recording %.100q: /api/recordings lists them", name)
	}
	row := SavedRow{Folder: i, Name: name}
	if head, err := f.head(&row); err != nil || head.Schema != f.Game {
		return nil, refusef(http.StatusNotFound, "there is no recording %.100q: /api/recordings lists them", name)
	}
	return os.OpenInRoot(f.Dirs[i], name)
}
