//go:build !unix

package main

import "syscall"

// This system has no signals that freeze a process: -faults fails here.
const (
	signalStop     = syscall.Signal(-1)
	signalContinue = syscall.Signal(-1)
)
