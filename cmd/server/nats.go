//go:build embednats

package main

import _ "github.com/netloop/netloop/app/embednats" // For --cluster embed: 10 MB of the program.
