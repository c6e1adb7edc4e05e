//go:build !linux

package main

import (
	"errors"
	"os/exec"
	"time"
)

var errSystem = errors.New("programs are pinned to cores on Linux alone")

func twoCores() (server, player int, err error) { return 0, 0, errSystem }

func startPinned(*exec.Cmd, int) error { return errSystem }

func processTime(int) (time.Duration, error) { return 0, errSystem }
