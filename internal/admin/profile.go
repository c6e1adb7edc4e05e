package admin

import (
	"fmt"
	"net/http"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"strings"
	"time"
)

// The duration of a recorded profile.
const (
	defaultProfile = 30 * time.Second
	maxProfile     = 60 * time.Second
)

// profileIndex lists the profiles, for people.
func profileIndex(w http.ResponseWriter, _ *http.Request) {
	var b strings.Builder
	b.WriteString("profiles, for go tool pprof http://:TOKEN@this-address/debug/pprof/NAME\n\nprofile  what the CPU does, for ?seconds=30\ntrace    execution trace, for ?seconds=5 and go tool trace\n")
	for _, p := range pprof.Profiles() {
		fmt.Fprintf(&b, "%s  %d\n", p.Name(), p.Count())
	}
	text(w, http.StatusOK, b.String())
}

// profile answers with a profile in the format of go tool pprof, or as text with ?debug=1. It
// replaces net/http/pprof, which would serve the profiles without a token on every listener of the
// program that serves http.DefaultServeMux.
func profile(w http.ResponseWriter, r *http.Request) {
	switch name := r.PathValue("name"); name {
	case "profile":
		timed(w, r, defaultProfile, func() error { return pprof.StartCPUProfile(w) }, pprof.StopCPUProfile)
	case "trace":
		timed(w, r, time.Second, func() error { return trace.Start(w) }, trace.Stop)
	default:
		p := pprof.Lookup(name)
		if p == nil {
			text(w, http.StatusNotFound, "there is no such profile: /debug/pprof/ lists them\n")
			return
		}
		if name == "heap" && r.FormValue("gc") != "" {
			runtime.GC()
		}
		debug, _ := strconv.Atoi(r.FormValue("debug")) // An invalid value counts as 0.
		kind := "application/octet-stream"
		if debug != 0 {
			kind = "text/plain; charset=utf-8"
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_ = p.WriteTo(w, debug) // the client may have disconnected
	}
}

// timed answers with a recording of the runtime: it calls start, waits for ?seconds= or for the
// time standard, and calls stop. It ends early if the client disconnects.
func timed(w http.ResponseWriter, r *http.Request, standard time.Duration, start func() error, stop func()) {
	length := standard
	if s := r.FormValue("seconds"); s != "" {
		seconds, err := strconv.ParseFloat(s, 64)
		length = time.Duration(seconds * float64(time.Second))
		if err != nil || !(seconds > 0) || length > maxProfile || length <= 0 {
			text(w, http.StatusBadRequest, fmt.Sprintf("seconds: use more than 0 and at most %v\n", maxProfile.Seconds()))
			return
		}
	}
	// Every connection of this server supports deadlines.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(length + writeTimeout))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := start(); err != nil {
		text(w, http.StatusServiceUnavailable, err.Error()+": try again later\n")
		return
	}
	select {
	case <-time.After(length):
	case <-r.Context().Done():
	}
	stop()
}
