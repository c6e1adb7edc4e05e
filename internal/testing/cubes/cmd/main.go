// Command cmd prints the size of a capture of moving cubes, as encoded by netloop's state coder and
// by published ones.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/netloop/netloop/internal/testing/cubes"
)

func main() {
	path, frames, err := parse(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "cubes:", err)
		os.Exit(2)
	}
	if err := run(os.Stdout, os.Stderr, path, frames); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// parse reads the command line. The error names the valid values; help is printed to out.
func parse(args []string, out io.Writer) (path string, frames int, err error) {
	flags := flag.NewFlagSet("cubes", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {
		flags.SetOutput(out)
		flags.PrintDefaults()
	}
	flags.StringVar(&path, "file", "", "a capture, plain or compressed with xz; without one that of this package")
	flags.IntVar(&frames, "frames", 0, "at most so many frames; 0 is all")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return "", 0, err
	case err != nil:
		return "", 0, fmt.Errorf("%w: -help lists the flags", err)
	case flags.NArg() > 0:
		return "", 0, fmt.Errorf("%q is not a flag: use -file and -frames", flags.Arg(0))
	case frames != 0 && frames <= cubes.Delay:
		return "", 0, fmt.Errorf("-frames: %d cannot be used: use more than %d, or 0 for all", frames, cubes.Delay)
	}
	return path, frames, nil
}

// run prints a line for each coder to out, and a description of the input to about.
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
	file, err := cubes.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := cubes.Run(file, opt)
	return r, errors.Join(err, file.Close())
}
