//go:build !unix

package main

import "os/exec"

// setApart has no effect on systems without process groups.
func setApart(*exec.Cmd) {}
