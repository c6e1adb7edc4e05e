//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// setApart puts a program into a process group of its own: a terminal interrupts all processes of a
// group.
func setApart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
