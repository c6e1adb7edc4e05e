//go:build unix

package pgtest

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	_ "github.com/lib/pq"

	"github.com/netloop/netloop/persist"
	"github.com/netloop/netloop/persist/sqlstore"
	"github.com/netloop/netloop/persist/storetest"
)

// programs returns the folder with the newest PostgreSQL, where Debian has it or in PATH.
func programs(t *testing.T) string {
	t.Helper()
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // The pattern is valid.
	if at, err := exec.LookPath("initdb"); err == nil {
		all = append(all, at)
	}
	if len(all) == 0 {
		t.Skip("needs PostgreSQL: apt-get install postgresql")
	}
	return filepath.Dir(all[len(all)-1])
}

// account returns the user that runs PostgreSQL, which refuses root; nil is the own one.
func account(t *testing.T, dir string) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Skip("as root it needs the user postgres of the package: ", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := cmp.Or(err, err2, os.Chown(dir, int(uid), int(gid))); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// open starts PostgreSQL in a temporary folder, without a port, and returns its database.
func open(t *testing.T) *sql.DB {
	t.Helper()
	bin := programs(t)
	dir, err := os.MkdirTemp("", "netloop-pg-") // The path of a socket has at most 107 bytes.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	as := account(t, dir)
	run := func(name string, args ...string) error {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", name, err, out)
		}
		return nil
	}
	data := filepath.Join(dir, "data")
	if err := run("initdb", "-D", data, "-U", "test", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"); err != nil {
		t.Fatal(err)
	}
	options := "-k " + dir + " -c listen_addresses= -c fsync=off"
	if err := run("pg_ctl", "-D", data, "-l", filepath.Join(dir, "log"), "-o", options, "-w", "-t", "60", "start"); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		t.Fatalf("%v\n%s", err, log)
	}
	db, err := sql.Open("postgres", "host="+dir+" user=test dbname=postgres sslmode=disable")
	t.Cleanup(func() {
		if err := errors.Join(db.Close(), run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// The store keeps its promises on PostgreSQL too.
func TestStoreOnPostgreSQL(t *testing.T) {
	db := open(t)
	storetest.Run(t, func(t *testing.T) persist.Store {
		s, err := sqlstore.Open(t.Context(), db, sqlstore.PostgreSQL, "records")
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
