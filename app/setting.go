package app

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// setting is one value that an operator may set. It writes straight to a field of the options or of
// the game's Config.
type setting struct {
	key  string // listen, arena.rocks: the flag's name without dashes, and the key in the file
	env  string // NETLOOP_ARENA_ROCKS
	help string
	from string // the source of the value: "" is the default
	game bool   // the default was set by the game
	v    reflect.Value

	// The value as text, by default and after load. reload uses these texts, because it must not
	// read v while the game runs.
	standard, loaded string
}

// envPrefix begins every environment variable that is a setting.
const envPrefix = "NETLOOP_"

var (
	durationType = reflect.TypeFor[time.Duration]()
	goodName     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)
)

// settingsOf makes the settings of a struct. Their keys begin with section and a dot, unless it is
// empty.
func settingsOf(section string, ptr any) ([]*setting, error) {
	v := reflect.ValueOf(ptr)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("the game's Config returns %T: return a pointer to a struct", ptr)
	}
	v = v.Elem()
	var all []*setting
	for field, value := range v.Fields() {
		name, tagged := field.Tag.Lookup("name")
		if !field.IsExported() || name == "-" {
			continue
		}
		if !tagged {
			name = kebab(field.Name)
		}
		if !goodName.MatchString(name) {
			return nil, fmt.Errorf("field %s of %v: its name %q cannot be a flag: use letters, digits, - and _", field.Name, v.Type(), name)
		}
		s := &setting{key: name, help: field.Tag.Get("help"), v: value}
		if section != "" {
			s.key = section + "." + name
		}
		s.env = envPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(s.key))
		if err := s.prepare(field.Tag); err != nil {
			return nil, fmt.Errorf("field %s of %v: %w", field.Name, v.Type(), err)
		}
		all = append(all, s)
	}
	return all, nil
}

// prepare checks the field's type, and sets a zero field to the default in its tag.
func (s *setting) prepare(tag reflect.StructTag) error {
	if s.kind() == "" {
		return fmt.Errorf("a %v cannot be a setting: use a bool, a number, a string, a time.Duration or an encoding.TextUnmarshaler, or the tag name:\"-\"", s.v.Type())
	}
	text, ok := tag.Lookup("default")
	if !ok {
		return nil
	}
	was := reflect.New(s.v.Type()).Elem()
	was.Set(s.v)
	if err := s.parse(text); err != nil {
		return fmt.Errorf("its tag default:%q cannot be used: %w", text, err)
	}
	if !was.IsZero() {
		s.v.Set(was)
	}
	return nil
}

// kind returns the type's name in --help, or "" if the type cannot be a setting.
func (s *setting) kind() string {
	if _, ok := s.v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		switch name := strings.ToLower(s.v.Type().Name()); name {
		case "", "bool", "int", "uint", "float", "string", "duration":
			return "text"
		default:
			return name
		}
	}
	if s.v.Type() == durationType {
		return "duration"
	}
	switch {
	case s.v.Kind() == reflect.Bool, s.v.Kind() == reflect.String:
		return s.v.Kind().String()
	case s.v.CanInt():
		return "int"
	case s.v.CanUint() && s.v.Kind() != reflect.Uintptr:
		return "uint"
	case s.v.CanFloat():
		return "float"
	}
	return ""
}

// parse sets the value. The error says what to change; the caller adds the key as the user wrote
// it.
func (s *setting) parse(text string) error {
	if u, ok := s.v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	bits := 0
	if s.v.CanInt() || s.v.CanUint() || s.v.CanFloat() {
		bits = s.v.Type().Bits()
	}
	switch s.kind() {
	case "string":
		s.v.SetString(text)
	case "bool":
		b, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("use true or false")
		}
		s.v.SetBool(b)
	case "duration":
		d, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("use a duration such as 500ms, 20s or 1h30m")
		}
		s.v.SetInt(int64(d))
	case "int":
		n, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			if bits == 64 { // Bounds of 64 bits would not help the user.
				return errors.New("use a whole number")
			}
			return fmt.Errorf("use a whole number from %d to %d", int64(-1)<<(bits-1), int64(1)<<(bits-1)-1)
		}
		s.v.SetInt(n)
	case "uint":
		n, err := strconv.ParseUint(text, 10, bits)
		if err != nil {
			return fmt.Errorf("use a whole number from 0 to %d", uint64(math.MaxUint64)>>(64-bits))
		}
		s.v.SetUint(n)
	case "float":
		f, err := strconv.ParseFloat(text, bits)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return errors.New("use a number")
		}
		s.v.SetFloat(f)
	}
	return nil
}

// text returns the value in the form that parse reads.
func (s *setting) text() string {
	switch v := s.v.Interface().(type) {
	case encoding.TextMarshaler:
		if b, err := v.MarshalText(); err == nil {
			return string(b)
		}
	case time.Duration:
		return shortDuration(v)
	}
	if s.v.CanFloat() {
		return strconv.FormatFloat(s.v.Float(), 'g', -1, s.v.Type().Bits())
	}
	return fmt.Sprint(s.v.Interface())
}

// shortDuration formats a duration without the zeros at its end: 1h, not 1h0m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// kebab turns MaxSpeed into max-speed and HTTPPort into http-port.
func kebab(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) {
			after := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if !unicode.IsUpper(runes[i-1]) || after {
				b.WriteByte('-')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
