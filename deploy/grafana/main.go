// Command grafana writes the Grafana dashboard of netloop servers to standard output: make
// dashboard writes netloop.json with it. It is a module of its own, so that no server links
// Grafana's SDK.
//
// The flow: panels.go lists the rows and panels with their expressions; meanings.go reads the
// meaning of each series from docs/METRICS.md, for the descriptions; dashboard.go builds the
// dashboard in Grafana's classic format.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	metrics := flag.String("metrics", "../../docs/METRICS.md", "the page with the meanings of the series")
	flag.Parse()
	text, err := generate(*metrics)
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "grafana:", err)
		os.Exit(1)
	}
}
