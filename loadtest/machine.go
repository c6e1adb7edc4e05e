package loadtest

import (
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/pflag"
)

// Run describes a load test, so that it can be repeated.
type Run struct {
	Command []string          `json:"command"` // the program's name, and its arguments
	Flags   map[string]string `json:"flags"`   // all of them, with their values
	Tags    map[string]string `json:"tags"`    // of --tags
	Seed    uint64            `json:"seed"`
	Begin   time.Time         `json:"begin"`
	// From and To are the measured window, in seconds since Begin, as the times of Series are.
	From float64 `json:"from_s"`
	To   float64 `json:"to_s"`
	// Tick is the period of the first bot's room.
	Tick *float64 `json:"tick_ms"`
	// Schedule is a digest of the scheduled calls in the measured window, of their clients and
	// offsets, for the clients that play through the window. Two complete runs of one seed, with
	// the same flags, have the same digest if both are on time: their windows began at the planned
	// time, because the clients joined soon enough.
	Schedule    string  `json:"schedule"`
	OnTime      bool    `json:"on_time"`
	Interrupted bool    `json:"interrupted"`
	Machine     Machine `json:"machine"` // of the load client
	Build       Build   `json:"build"`   // of the load client
}

// Machine is a computer.
type Machine struct {
	Host  string `json:"host"`
	OS    string `json:"os"`
	Arch  string `json:"arch"`
	Cores int    `json:"cores"` // of the machine
	Procs int    `json:"procs"` // GOMAXPROCS
}

// Build is a version of a program.
type Build struct {
	Go       string `json:"go"`
	Module   string `json:"module"`
	Version  string `json:"version"`
	Revision string `json:"revision"` // of its source; empty if unknown
	Modified bool   `json:"modified"` // the source had uncommitted changes
}

func thisMachine() Machine {
	host, _ := os.Hostname() // Without a name the field is empty.
	return Machine{Host: host, OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Procs: runtime.GOMAXPROCS(0)}
}

func thisBuild() Build {
	b := Build{Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Module, b.Version = info.Main.Path, info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// valuesOf returns the flags' values.
func valuesOf(flags *pflag.FlagSet) map[string]string {
	all := map[string]string{}
	flags.VisitAll(func(f *pflag.Flag) { all[f.Name] = f.Value.String() })
	delete(all, "help")
	return all
}
