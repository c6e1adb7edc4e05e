package main

import (
	"bytes"
	"errors"
	"flag"
	"strings"
	"testing"
)

func TestInvalidFlagsAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"x y":         `"x" is not a flag`,
		"-frames 9 x": `"x" is not a flag`,
		"-frames -1":  "-frames: -1 cannot be used: use more than 6, or 0 for all",
		"-frames 6":   "-frames: 6 cannot be used",
		"-frames all": `"all" for flag -frames`,
		"-nope":       "-nope: -help lists the flags",
	} {
		_, _, err := parse(strings.Fields(args), new(bytes.Buffer))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	path, frames, err := parse([]string{"-file", "a.xz", "-frames", "7"}, new(bytes.Buffer))
	if path != "a.xz" || frames != 7 || err != nil {
		t.Errorf("%q, %d, %v", path, frames, err)
	}
	var out bytes.Buffer
	if _, _, err := parse([]string{"-h"}, &out); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "-frames") {
		t.Errorf("%q, %v", out.String(), err)
	}
}
