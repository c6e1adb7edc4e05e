// Package files is a [persist.Store] in a folder: a file for each key, readable by people. It is
// for one machine. Several processes may use the folder at once; a network file system may lack the
// locks that this needs. A process that is stopped in the middle of a call holds the lock of a
// sixteenth of the keys: calls of the others for these keys wait until it continues or ends, or
// until their contexts end.
package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/netloop/netloop/persist"
)

// Store is a folder. Any goroutine may use it.
type Store struct {
	dir    string
	shards [shards]shard
}

// A shard guards the files of some keys: turn against other goroutines, lock against other
// processes.
type shard struct {
	turn chan struct{} // holds a value while a goroutine has its turn
	lock *flock.Flock
}

const shards = 16

// lockPoll is how often a lock that another process holds is tried.
const lockPoll = 5 * time.Millisecond

// maxKey is the length of the longest key, in bytes: file systems limit names to 255.
const maxKey = 80

var _ persist.Store = (*Store)(nil)

// Open opens a folder, and makes it if there is none.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	s := &Store{dir: dir}
	for i := range s.shards {
		s.shards[i] = shard{make(chan struct{}, 1), flock.New(filepath.Join(dir, fmt.Sprintf(".lock-%x", i)))}
	}
	return s, nil
}

// Close closes the lock files. No call may be under way.
func (s *Store) Close() (err error) {
	for i := range s.shards {
		err = errors.Join(err, s.shards[i].lock.Close())
	}
	return err
}

// Load implements [persist.Store].
func (s *Store) Load(ctx context.Context, key string, incarnation uint64) (record []byte, err error) {
	err = s.update(ctx, key, incarnation, func(was []byte) []byte { record = was; return was })
	return record, err
}

// Save implements [persist.Store].
func (s *Store) Save(ctx context.Context, key string, incarnation uint64, record []byte) error {
	return s.update(ctx, key, incarnation, func([]byte) []byte { return record })
}

// Delete implements [persist.Store]. The file remains, with the owner alone, until [Store.Prune].
func (s *Store) Delete(ctx context.Context, key string, incarnation uint64) error {
	return s.update(ctx, key, incarnation, func([]byte) []byte { return nil })
}

// update replaces the record of a key by that which change returns, and its owner.
func (s *Store) update(ctx context.Context, key string, incarnation uint64, change func(was []byte) []byte) error {
	if len(key) > maxKey {
		return fmt.Errorf("files: the key %q has %d bytes: use at most %d", key, len(key), maxKey)
	}
	unlock, err := s.lock(ctx, key)
	if err != nil {
		return fmt.Errorf("files: %q: %w", key, err)
	}
	defer unlock()
	name := s.name(key)
	owner, was, err := read(name)
	switch {
	case err != nil:
		return fmt.Errorf("files: %q: %w", key, err)
	case owner > incarnation:
		return persist.ErrSuperseded
	}
	if err := s.write(name, incarnation, change(was)); err != nil {
		return fmt.Errorf("files: %q: %w", key, err)
	}
	return nil
}

// lock waits for the turn of a key's shard.
func (s *Store) lock(ctx context.Context, key string) (unlock func(), err error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	sh := &s.shards[h.Sum32()%shards]
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case sh.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if _, err := sh.lock.TryLockContext(ctx, lockPoll); err != nil {
		<-sh.turn
		return nil, err
	}
	return func() {
		_ = sh.lock.Unlock() // The end of the process would release it too.
		<-sh.turn
	}, nil
}

// suffix ends the name of a key's file.
const suffix = ".record"

// name returns the file of a key. Capitals are escaped, and so are all characters except letters,
// digits, - and _: some file systems treat capitals like small letters, and reserve names.
func (s *Store) name(key string) string {
	var b strings.Builder
	b.WriteByte('_')
	for _, c := range []byte(key) {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return filepath.Join(s.dir, b.String()+suffix)
}

// The first line of a file has the owner, and tells whether a record follows.
const (
	withRecord    = "netloop record of incarnation %d\n"
	withoutRecord = "netloop: deleted by incarnation %d\n"
)

// read returns the owner and the record of a file: none without a file.
func read(name string) (owner uint64, record []byte, err error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	line, rest, _ := bytes.Cut(b, []byte("\n"))
	if n, _ := fmt.Sscanf(string(line)+"\n", withRecord, &owner); n == 1 {
		return owner, rest, nil
	}
	if n, _ := fmt.Sscanf(string(line)+"\n", withoutRecord, &owner); n == 1 {
		return owner, nil, nil
	}
	return 0, nil, fmt.Errorf("%s is not a record: %.60q", name, line)
}

// write replaces a file: after a crash, also of the machine, it is the old or the new one.
func (s *Store) write(name string, owner uint64, record []byte) (err error) {
	f, err := os.CreateTemp(s.dir, ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	head := withRecord
	if record == nil {
		head = withoutRecord
	}
	_, err = fmt.Fprintf(f, head, owner)
	if err == nil {
		_, err = f.Write(record)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return syncDir(s.dir)
}

// Prune deletes the records that were neither loaded nor saved for a time, with their owners:
// choose a time that is longer than the life of any room. It returns their number.
func (s *Store) Prune(ctx context.Context, unused time.Duration) (n int, err error) {
	all, err := os.ReadDir(s.dir)
	if err != nil {
		return 0, fmt.Errorf("files: %w", err)
	}
	before := time.Now().Add(-unused)
	for _, entry := range all {
		info, err := entry.Info()
		if err != nil || !strings.HasSuffix(entry.Name(), suffix) && !strings.HasPrefix(entry.Name(), ".new-") || info.ModTime().After(before) {
			continue // An entry without an Info was deleted meanwhile.
		}
		if err := ctx.Err(); err != nil {
			return n, err
		}
		if err := os.Remove(filepath.Join(s.dir, entry.Name())); err == nil {
			n++
		}
	}
	return n, nil
}
