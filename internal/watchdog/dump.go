package watchdog

import (
	"runtime"
	"strconv"
	"strings"
)

// The limits of a dump. The stacks of all goroutines are read into memory at once, which stops the
// process for some milliseconds; for a thousand clients they take 3 MiB. A log line is shorter: the
// whole stack of the hanging goroutine, and as many of the others as fit.
const (
	maxStacks = 8 << 20
	maxOwn    = 16 << 10
	maxOthers = 64 << 10
)

// Dump describes the goroutines of a process at one moment.
type Dump struct {
	// Own is the stack of the goroutine that runs the ticks, empty if it has ended.
	Own string
	// Function is the function that the loop has called on that goroutine, with file and line: the
	// system that hangs, or a handler or hook that hangs in a built-in system.
	Function string
	// Others are the stacks of other goroutines, and Omitted is the number of stacks that did not
	// fit.
	Others  string
	Omitted int
}

// Dump reads the stacks of all goroutines.
func (w *Watchdog) Dump() Dump {
	buf := make([]byte, maxStacks)
	return parseStacks(string(buf[:runtime.Stack(buf, true)]), w.goroutine.Load())
}

// parseStacks splits a dump into the stack of the goroutine own and the other stacks, as many as
// fit.
func parseStacks(all string, own uint64) Dump {
	var d Dump
	var others strings.Builder
	for stack := range strings.SplitSeq(strings.TrimSpace(all), "\n\n") {
		switch {
		case goroutineID(stack) == own && own != 0:
			d.Own, d.Function = truncate(stack, maxOwn), calledFunction(stack)
		case others.Len()+len(stack) > maxOthers:
			d.Omitted++
		default:
			others.WriteString(stack)
			others.WriteString("\n\n")
		}
	}
	d.Others = strings.TrimSpace(others.String())
	return d
}

// calledFunction finds the frame that the loop has called: the one above the first frame of the
// loop itself. A frame is a line with the function and one with the place.
func calledFunction(stack string) string {
	lines := strings.Split(stack, "\n")
	for i := 3; i < len(lines); i += 2 {
		if !strings.Contains(lines[i], "/internal/loop.(*Loop") {
			continue
		}
		name := lines[i-2]
		if at := strings.LastIndexByte(name, '('); at > 0 {
			name = name[:at] // The arguments follow.
		}
		place, _, _ := strings.Cut(strings.TrimSpace(lines[i-1]), " ")
		return name + " " + place
	}
	return ""
}

func truncate(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:most] + "\n..."
}

// currentGoroutine returns the number of the calling goroutine, as in stacks: the runtime reveals
// it only there.
func currentGoroutine() uint64 {
	var buf [64]byte
	return goroutineID(string(buf[:runtime.Stack(buf[:], false)]))
}

// goroutineID parses "goroutine 7 [running]:" and returns 7, or 0 for any other line.
func goroutineID(stack string) uint64 {
	text, _ := strings.CutPrefix(stack, "goroutine ")
	digits, _, _ := strings.Cut(text, " ")
	n, _ := strconv.ParseUint(digits, 10, 64)
	return n
}
