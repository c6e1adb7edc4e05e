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
	path := flag.String("file", "", "a capture, plain or compressed with xz; without one the cubes are simulated")
	frames := flag.Int("frames", 0, "at most so many frames; 0 is all of a capture, and 2838 of a simulation")
	flag.Parse()
	if err := run(os.Stdout, os.Stderr, *path, *frames); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run prints a line for each coder to out, and to about what was measured.
func run(out, about io.Writer, path string, frames int) error {
	begin := time.Now()
	opt := cubes.Options{Frames: frames, Clock: func() time.Duration { return time.Since(begin) }}
	r, err := measure(path, opt)
	if err != nil {
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

func measure(path string, opt cubes.Options) (*cubes.Report, error) {
	if path == "" {
		return cubes.Run(cubes.NewField(cubes.DefaultSeed, cubes.DefaultFrames), opt)
	}
	file, err := cubes.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := cubes.Run(file, opt)
	return r, errors.Join(err, file.Close())
}
