package history_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/inspect/history"
	"github.com/netloop/netloop/internal/recording"
)

// The recordings of the game are listed, the newest first; other files of the folders are neither
// listed nor sent.
func TestFoldersListTheRecordings(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	file := arenaFile(t)
	for i, c := range []struct {
		path string
		b    []byte
	}{{filepath.Join(one, "old.rec"), file}, {filepath.Join(two, "new.rec"), file}, {filepath.Join(one, "secret.txt"), []byte("secret")}, {filepath.Join(one, ".hidden"), file}} {
		if err := os.WriteFile(c.path, c.b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(c.path, time.Time{}, time.Unix(int64(1000+i), 0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(two, "new.rec"), filepath.Join(one, "link.rec")); err != nil {
		t.Log("without symbolic links:", err)
	}
	f := history.Folders{Dirs: []string{one, two, filepath.Join(one, "none")}, Game: "arena", RoomOf: func(recording.Head) string { return "lobby" }}
	a, err := f.List()
	if err != nil || len(a.Files) != 2 || len(a.Folders) != 3 || a.More != 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	if want := (history.SavedRow{Folder: 1, Name: "new.rec", Path: filepath.Join(two, "new.rec"), Room: "lobby", Bytes: int64(len(file)), Modified: 1001}); a.Files[0] != want || a.Files[1].Name != "old.rec" {
		t.Errorf("%+v, want %+v first", a.Files, want)
	}
	opened, err := f.Open(url.Values{"folder": {"1"}, "name": {"new.rec"}})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := opened.Stat(); err != nil || info.Size() != int64(len(file)) {
		t.Errorf("%v, %v", info, err)
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
	for _, query := range []string{"name=secret.txt", "name=link.rec", "name=../x", "name=", "name=new.rec", "folder=9&name=old.rec", "folder=-1&name=old.rec", "folder=x&name=old.rec", "name=" + url.QueryEscape(filepath.Join(one, "old.rec"))} {
		values, _ := url.ParseQuery(query)
		if _, err := f.Open(values); err == nil || !strings.Contains(err.Error(), "there is no recording") {
			t.Errorf("%s: %v", query, err)
		}
	}
	f.Game = "another"
	if a, err := f.List(); err != nil || len(a.Files) != 0 {
		t.Errorf("of another game: %+v, %v", a, err)
	}
	if a, err := new(history.Folders).List(); err != nil || a.Files == nil || a.Folders == nil {
		t.Errorf("without a folder: %+v, %v", a, err)
	}
}
