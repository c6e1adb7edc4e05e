package logging

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"
	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"
)

func newEncoder(format string) (zapcore.Encoder, error) {
	cfg := zapcore.EncoderConfig{
		TimeKey: "time", LevelKey: "level", NameKey: "logger", MessageKey: "msg", StacktraceKey: "stack",
		LineEnding:       "\n",
		EncodeTime:       encodeTime,
		EncodeLevel:      zapcore.LowercaseLevelEncoder,
		EncodeDuration:   zapcore.StringDurationEncoder,
		EncodeName:       zapcore.FullNameEncoder,
		ConsoleSeparator: " ",
	}
	switch strings.ToLower(format) {
	case "json":
		return zapcore.NewJSONEncoder(cfg), nil
	case "", "text":
		cfg.EncodeLevel = zapcore.CapitalLevelEncoder
		return &oneLine{zapcore.NewConsoleEncoder(cfg)}, nil
	}
	return nil, fmt.Errorf("log-format: %q is not a format: use json or text", format)
}

// encodeTime writes milliseconds in UTC: lines of several machines sort together.
func encodeTime(t time.Time, enc zapcore.PrimitiveArrayEncoder) {
	enc.AppendString(t.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// oneLine makes an entry exactly one line of printable text. zap's console encoder writes
// messages, names and stacks as they are, so a newline in a chat message would forge a log
// line and an escape sequence would reach the terminal. Escaping the finished line leaves
// no part out.
type oneLine struct{ zapcore.Encoder }

func (e *oneLine) Clone() zapcore.Encoder { return &oneLine{e.Encoder.Clone()} }

func (e *oneLine) EncodeEntry(ent zapcore.Entry, fields []zapcore.Field) (*buffer.Buffer, error) {
	buf, err := e.Encoder.EncodeEntry(ent, fields)
	if err != nil {
		return nil, err
	}
	line := strings.TrimSuffix(buf.String(), "\n")
	if !strings.ContainsFunc(line, mustEscape) {
		return buf, nil
	}
	buf.Reset()
	buf.AppendString(Escape(line))
	buf.AppendByte('\n')
	return buf, nil
}

// mustEscape reports control characters (C0, DEL and C1), line and paragraph separators, the marks
// that reorder text, and invalid UTF-8 (or its replacement mark).
func mustEscape(r rune) bool {
	return r == utf8.RuneError || !unicode.IsPrint(r)
}

// Escape returns a text as one line of printable text, in which all other characters are escaped in
// Go's syntax. A terminal shows the text of a client only after Escape.
func Escape(s string) string {
	if !strings.ContainsFunc(s, mustEscape) {
		return s
	}
	dst := make([]byte, 0, 2*len(s))
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case !mustEscape(r):
			dst = append(dst, s[:size]...)
		case size == 1 && r == utf8.RuneError:
			dst = fmt.Appendf(dst, `\x%02x`, s[0])
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			dst = append(dst, quoted[1:len(quoted)-1]...)
		}
		s = s[size:]
	}
	return string(dst)
}

// noticeWith returns a function that formats the line about missing lines.
func noticeWith(enc zapcore.Encoder) func(n uint64) []byte {
	return func(n uint64) []byte {
		buf, err := enc.EncodeEntry(zapcore.Entry{
			Level: zapcore.WarnLevel, Time: zapcore.DefaultClock.Now(), Message: "log lines were dropped, output is too slow",
		}, []zapcore.Field{zap.Uint64("lines", n)})
		if err != nil {
			return nil
		}
		return buf.Bytes()
	}
}
