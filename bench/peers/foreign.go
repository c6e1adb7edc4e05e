package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// servers has the sources of the peers in other languages, which this program builds.
//
//go:embed servers
var servers embed.FS

// unpack writes the sources of a peer into a folder of dir.
func unpack(name, dir string) (string, error) {
	to := filepath.Join(dir, name)
	sub, err := fs.Sub(servers, "servers/"+name)
	if err != nil {
		return "", err
	}
	err = fs.WalkDir(sub, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(sub, p)
		if err != nil {
			return err
		}
		return errors.Join(os.MkdirAll(to, 0o755), os.WriteFile(filepath.Join(to, p), text, 0o644))
	})
	return to, err
}

// buildLimit bounds the time of one command that builds a peer.
const buildLimit = 3 * time.Minute

// output runs a command in a folder and returns its output. An error has the last line of that.
func output(dir, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	said := strings.TrimSpace(string(text))
	if err != nil {
		return "", fmt.Errorf("%s: %w %s", name, err, said[strings.LastIndexByte(said, '\n')+1:])
	}
	return said, nil
}

// makeColyseus installs Colyseus with npm.
func makeColyseus(dir string) (serve, play []string, version string, err error) {
	to, err := unpack("colyseus", dir)
	if err != nil {
		return nil, nil, "", err
	}
	if _, err := output(to, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"); err != nil {
		return nil, nil, "", err
	}
	node, err := output(to, "node", "--version")
	if err != nil {
		return nil, nil, "", err
	}
	var core struct {
		Version string `json:"version"`
	}
	text, err := os.ReadFile(filepath.Join(to, "node_modules/@colyseus/core/package.json"))
	if err == nil {
		err = json.Unmarshal(text, &core)
	}
	command := func(file string) []string { return []string{"node", filepath.Join(to, file)} }
	return command("server.mjs"), command("client.mjs"), core.Version + ", Node " + strings.TrimPrefix(node, "v"), err
}

// makeENet compiles the program of ENet.
func makeENet(dir string) (serve, play []string, version string, err error) {
	to, err := unpack("enet", dir)
	if err != nil {
		return nil, nil, "", err
	}
	if version, err = output(to, "pkg-config", "--modversion", "libenet"); err != nil {
		return nil, nil, "", fmt.Errorf("install Debian's gcc, pkg-config and libenet-dev: %w", err)
	}
	program := filepath.Join(to, "enet")
	if _, err := output(to, "gcc", "-std=gnu11", "-O2", "-Wall", "-o", program, "enet.c", "-lenet", "-lm"); err != nil {
		return nil, nil, "", err
	}
	return []string{program, "serve"}, []string{program, "play"}, version, nil
}

// moduleVersion returns the version of a module that this program contains.
func moduleVersion(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, d := range info.Deps {
		if d.Path == module && d.Replace == nil {
			return strings.TrimPrefix(d.Version, "v")
		}
	}
	return ""
}
