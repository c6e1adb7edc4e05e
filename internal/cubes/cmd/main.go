// Command cmd prints what the state coder and others take for a capture of moving cubes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/netloop/netloop/internal/cubes"
)

func main() {
	path := flag.String("file", "", "a capture, plain or compressed with xz")
	frames := flag.Int("frames", 0, "at most so many frames; 0 is all of them")
	flag.Parse()
	if err := run(os.Stdout, os.Stderr, *path, *frames); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run prints a line for each coder to out, and to about what was measured.
func run(out, about io.Writer, path string, frames int) error {
	file, err := cubes.Open(path)
	if err != nil {
		return err
	}
	begin := time.Now()
	r, err := cubes.Run(file, cubes.Options{Frames: frames, Clock: func() time.Duration { return time.Since(begin) }})
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	fmt.Fprintf(about, "%d frames of %d cubes, each decoded exactly; %.1f %% of the cubes change within %d frames\n",
		r.Frames, cubes.Count, 100*r.ChangedShare(), cubes.Delay)
	for i := range r.Sizes {
		s := &r.Sizes[i]
		if fmt.Fprintf(out, "coder=%s kbit/s=%.1f", s.Coder, r.Kbits(s)); i == 0 {
			fmt.Fprintf(out, " us_per_frame=%.1f", r.Micros())
		}
		fmt.Fprintln(out)
	}
	return nil
}
