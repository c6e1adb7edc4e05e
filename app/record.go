package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/recording"
)

// recordingFile is the file of --record, or of one room. A nil recordingFile has no effect.
type recordingFile struct {
	*recording.Sink
	file *os.File
}

// Close closes the file.
func (f *recordingFile) Close() error { return errors.Join(f.Sink.Close(), f.file.Close()) }

// newRecording makes the file. The file must not exist, because after a crash it contains the run
// that the operator wants to examine. Other users cannot read the file, because it contains tokens.
func (c *configuration) newRecording() (*recordingFile, error) {
	path := c.options.Record
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, c.bad("record", path, "file exists: move it away or choose another file")
	}
	if err != nil {
		return nil, c.bad("record", path, "use a file in a writable folder: "+err.Error())
	}
	return &recordingFile{recording.NewSink(f), f}, nil
}

// begin makes a server write to the file.
func (f *recordingFile) begin(c *configuration, cfg *netloop.Config) {
	if f != nil {
		cfg.Record, cfg.RecordNotes = f.Sink, c.gameSettings()
	}
}

// close closes the file, and removes it if the server never ran.
func (f *recordingFile) close(ran bool) error {
	if f == nil {
		return nil
	}
	err := f.Close()
	if !ran {
		err = errors.Join(err, os.Remove(f.file.Name()))
	}
	return err
}

// roomRecordings makes the files of --record-rooms. A nil roomRecordings makes none.
type roomRecordings struct {
	dir   string
	began string // start of the server, for the names of the files
	made  atomic.Uint64
	log   *slog.Logger
}

// newRoomRecordings makes the folder. Other users cannot read it, because its files contain tokens.
func (c *configuration) newRoomRecordings(now time.Time, log *slog.Logger) (*roomRecordings, error) {
	dir := c.options.RecordRooms
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, c.bad("record-rooms", dir, "use a writable folder: "+err.Error())
	}
	return &roomRecordings{dir: dir, began: now.UTC().Format("20060102T150405Z"), log: log}, nil
}

// begin makes a server record its rooms to the files.
func (f *roomRecordings) begin(c *configuration, cfg *netloop.Config) {
	if f != nil {
		cfg.RecordRoom, cfg.RecordNotes = f.open, c.gameSettings()
	}
}

// open makes the file of a room. If it cannot make the file, the room runs without a recording,
// because a full disk must not stop the game.
func (f *roomRecordings) open(room netloop.RoomInfo) (io.WriteCloser, error) {
	name := fmt.Sprintf("%s-%06d-%s.rec", f.began, f.made.Add(1), fileName(room.Spec.Name))
	file, err := os.OpenFile(filepath.Join(f.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		f.log.Error("room is not recorded", "room", room.Spec.Name, "error", err)
		return nil, nil
	}
	return &recordingFile{recording.NewSink(file), file}, nil
}

// maxFileName bounds the bytes of a room's name in a file name: file systems permit 255 bytes for
// the whole name.
const maxFileName = 64

// fileName returns a room's name as part of a file name. It replaces all characters except letters,
// digits and -_. in ASCII, because a client may have chosen the name.
func fileName(room string) string {
	safe := strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.", r)) {
			return r
		}
		return '_'
	}, room)
	return safe[:min(len(safe), maxFileName)]
}

// gameSettings returns the values of the game's own settings, by key.
func (c *configuration) gameSettings() map[string]string {
	texts := map[string]string{}
	for _, s := range c.settings {
		if strings.Contains(s.key, ".") {
			texts[s.key] = s.text()
		}
	}
	return texts
}

// useGameSettings sets the game's settings to the recorded ones.
func (c *configuration) useGameSettings(texts map[string]string) error {
	for key, text := range texts {
		s := c.find(key)
		if s == nil || !strings.Contains(key, ".") {
			return fmt.Errorf("the game was recorded with %s=%q, and this program has no such setting: replay it with the program that recorded it", key, text)
		}
		if err := s.parse(text); err != nil {
			return netloop.ConfigError(key, fmt.Sprintf("%q", text), "the recording has it: %s", err)
		}
	}
	return nil
}

// replayCommand makes the command that runs a recording again.
func (p *program) replayCommand(c *configuration) *cobra.Command {
	var ticks bool
	cmd := &cobra.Command{
		Use: "replay FILE", Short: "Run a recording again and compare all ticks: exit status 0 if they are identical",
		Long: "Runs a recording that --record made, without network and clock, and compares the state and the\n" +
			"messages of every tick with the recorded ones.\n\n" +
			"Exit status: 0 all ticks are identical (of a truncated file, all complete ones); 1 a tick\n" +
			"differs, cannot be replayed, or the file is damaged there; 2 the file is no recording of this game.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("replay takes one argument: %s FILE", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return p.replay(c, args[0], ticks) },
	}
	cmd.Flags().BoolVar(&ticks, "ticks", false, "print a line for every tick")
	return cmd
}

// replay runs the recording in a file, up to the first tick that differs.
func (p *program) replay(c *configuration, path string, ticks bool) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("replay: cannot read %q: name an existing file: %w", path, err)
	}
	defer func() { _ = f.Close() }() // It was only read.
	r, err := c.openReplay(p.game, f)
	if err != nil {
		return fmt.Errorf("replay: cannot use %q: %s", path, bare(err))
	}
	var last netloop.ReplayTick
	for t, err := range r.Ticks() {
		if errors.Is(err, recording.ErrTruncated) {
			fmt.Fprintf(p.stderr, "%s: %v\n", p.name, ofFile(path, err))
			break
		}
		if err != nil {
			return &failure{ofFile(path, err)}
		}
		if last = t; ticks {
			if _, err := fmt.Fprintf(p.stdout, "tick %d state %016x sent %016x\n", t.Tick, t.State, t.Sent); err != nil {
				return &failure{err}
			}
		}
	}
	_, err = fmt.Fprintf(p.stdout, "identical: %d ticks, the last with state %016x, sent %016x\n", last.Tick, last.State, last.Sent)
	return err
}

// ofFile adds the recording's path to an error.
func ofFile(path string, err error) error { return fmt.Errorf("replay: %q: %s", path, bare(err)) }

// bare returns an error's text without the prefixes that repeat the source.
func bare(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "netloop: "), "replay: ")
}

// openReplay reads the head of a recording twice, because the game must have its recorded settings
// before netloop opens it.
func (c *configuration) openReplay(g netloop.Game, f io.ReadSeeker) (*netloop.Replay, error) {
	_, b, err := recording.NewReader(f)
	if err != nil {
		return nil, err
	}
	head, err := recording.ReadHead(b)
	if err != nil {
		return nil, err
	}
	if own := g.Schema().Name(); head.Schema != "" && head.Schema != own {
		return nil, fmt.Errorf("it is of the game %q, and this program is %q: replay it with the program that recorded it", head.Schema, own)
	}
	if err := c.useGameSettings(head.Notes); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return netloop.NewReplay(netloop.Config{}, g, f)
}
