//go:build !unix

package main

import "os/exec"

// setApart is for systems with process groups.
func setApart(*exec.Cmd) {}
