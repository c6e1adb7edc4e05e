//go:build unix

package main

import "syscall"

// The signals that freeze a process and let it continue.
const (
	signalStop     = syscall.SIGSTOP
	signalContinue = syscall.SIGCONT
)
