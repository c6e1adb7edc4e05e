package loadtest

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// output is one --out: a format, and a file or stdout.
type output struct {
	format string
	file   string // empty is stdout
}

// formats are those of --out: text for people, the whole result as JSON, the series as CSV, the
// exact histograms as a log of HdrHistogram, and a page of plots.
var formats = []string{"text", "json", "csv", "hlog", "html"}

// parseOut parses the outputs, and checks before the measurement that their files can be written.
// Text goes to stdout unless another output does.
func (o *options) parseOut() error {
	o.outputs = nil
	stdout := 0
	for _, text := range o.out {
		format, file, named := strings.Cut(text, "=")
		switch {
		case !slices.Contains(formats, format) || named && file == "":
			return badFlag("out", text, "use text, json, csv, hlog or html, or with a file as in json=FILE")
		case !named:
			stdout++
		default:
			if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
				return badFlag("out", text, "its folder does not exist")
			}
		}
		o.outputs = append(o.outputs, output{format, file})
	}
	switch {
	case stdout > 1:
		return badFlag("out", strings.Join(o.out, " "), "name a file for all of them but one, as in json=FILE")
	case stdout == 0:
		o.outputs = append(o.outputs, output{format: "text"})
	}
	return nil
}

// toStdout reports whether stdout has this format.
func (o *options) toStdout(format string) bool {
	return slices.Contains(o.outputs, output{format: format})
}

// writeOutputs writes to each output. After an error it writes the others: a full disk must not
// cost the text too.
func (o *options) writeOutputs(stdout io.Writer, write func(format string, w io.Writer) error) error {
	var failed []error
	for _, out := range o.outputs {
		if err := out.write(stdout, write); err != nil {
			failed = append(failed, fmt.Errorf("--out: %w", err))
		}
	}
	return errors.Join(failed...)
}

func (out output) write(stdout io.Writer, write func(format string, w io.Writer) error) error {
	if out.file == "" {
		return write(out.format, stdout)
	}
	f, err := os.OpenFile(out.file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(write(out.format, f), f.Close())
}

// write writes a report in a format.
func write(format string, o *options, rep *report, w io.Writer) error {
	switch format {
	case "json":
		text, err := json.MarshalIndent(&rep.Result, "", "  ")
		if err != nil {
			return err
		}
		_, err = w.Write(append(tidy(text), '\n'))
		return err
	case "csv":
		return writeCSV(w, rep.Series.Points)
	case "hlog":
		return writeHistogramLog(w, &rep.Result)
	case "html":
		return writePage(w, []pageRun{{Result: rep.Result}}, nil)
	}
	var text strings.Builder
	writeSummary(&text, o, rep)
	_, err := io.WriteString(w, text.String())
	return err
}

var (
	bucket = regexp.MustCompile(`\[\n\s*(\d+),\n\s*(\d+)\n\s*\](,?)\n\s*`)
	point  = regexp.MustCompile(`\{\n\s*"at_s":[^{}]*\}`)
	indent = regexp.MustCompile(`\n\s*`)
)

// tidy puts the buckets of a histogram on one line, and each point of the series: indented JSON
// would be many thousand lines.
func tidy(text []byte) []byte {
	text = bucket.ReplaceAll(text, []byte("[$1,$2]$3"))
	return point.ReplaceAllFunc(text, func(p []byte) []byte { return indent.ReplaceAll(p, nil) })
}

// writeCSV writes one line per point. The columns have the names of the JSON; an unknown figure is
// an empty cell.
func writeCSV(w io.Writer, points []Point) error {
	out := csv.NewWriter(w)
	row := make([]string, reflect.TypeFor[Point]().NumField())
	for i := range row {
		row[i] = reflect.TypeFor[Point]().Field(i).Tag.Get("json")
	}
	_ = out.Write(row) // Error returns the first error.
	for _, p := range points {
		v := reflect.ValueOf(p)
		for i := range row {
			row[i] = ""
			switch x := v.Field(i).Interface().(type) {
			case *float64:
				if x != nil {
					row[i] = strconv.FormatFloat(*x, 'f', -1, 64)
				}
			default:
				row[i] = fmt.Sprint(x)
			}
		}
		_ = out.Write(row) // As above.
	}
	out.Flush()
	return out.Error()
}

// writeHistogramLog writes the exact histograms in the log format of HdrHistogram 1.3, which its
// viewers read: one line per distribution, with the name as its tag. Its values are microseconds.
func writeHistogramLog(w io.Writer, r *Result) error {
	log := hdrhistogram.NewHistogramLogWriter(w)
	begin := r.Run.Begin.UnixMilli()
	failed := []error{log.OutputLogFormatVersion(), log.OutputComment("[netloop load test, microseconds]"), log.OutputStartTime(begin), log.OutputLegend()}
	log.SetBaseTime(begin)
	at := func(s float64) int64 { return begin + int64(time.Duration(s*float64(time.Second))/time.Millisecond) }
	for _, name := range sortedKeys(r.Histograms) {
		h, err := r.Histograms[name].hdr()
		if err != nil {
			return err
		}
		h.SetTag(name)
		h.SetStartTimeMs(at(r.Run.From))
		h.SetEndTimeMs(at(r.Run.To))
		failed = append(failed, log.OutputIntervalHistogram(h))
	}
	return errors.Join(failed...)
}
