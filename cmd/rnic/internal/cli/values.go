package cli

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cm"
)

// value is a flag at p.
type value[T any] struct {
	p     *T
	kind  string // for help
	text  func(T) string
	parse func(string) (T, error)
}

func (v *value[T]) String() string { return v.text(*v.p) }
func (v *value[T]) Type() string   { return v.kind }

func (v *value[T]) Set(s string) error {
	x, err := v.parse(s)
	if err == nil {
		*v.p = x
	}
	return err
}

// OnOff is the flag at p, which holds its default: on or off.
func OnOff(p *bool) pflag.Value {
	return Word(p, "on|off", "want on or off", []string{"on", "off"}, []bool{true, false})
}

// connectionModel is the flag at p: auto, on or off; true and false are what --p2p took once.
func connectionModel(p *cm.Model) pflag.Value {
	return Word(p, "auto|on|off", "want auto, on or off", []string{"auto", "on", "off", "true", "false"},
		[]cm.Model{cm.AnyModel, cm.PeerToPeer, cm.ClientServer, cm.PeerToPeer, cm.ClientServer})
}

// IntRange is the flag at p, which holds its default: an integer from least to most.
func IntRange(p *int, least, most int) pflag.Value {
	return &value[int]{p, "int", strconv.Itoa, func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("want a number from %d to %d", least, most)
		}
		return n, nil
	}}
}

// DurationRange is the flag at p, which holds its default: a time from least to most.
func DurationRange(p *time.Duration, least, most time.Duration) pflag.Value {
	return &value[time.Duration]{p, "duration", time.Duration.String, func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		if err != nil || d < least || d > most {
			return 0, fmt.Errorf("want a time from %v to %v, such as 500ms", least, most)
		}
		return d, nil
	}}
}

// SizeRange is the flag at p, which holds its default: octets from least to most, such as 4096, 64K or 1M.
func SizeRange(p *uint64, least, most uint64) pflag.Value {
	return &value[uint64]{p, "size", FormatSize, func(s string) (uint64, error) {
		n, err := parseSize(s)
		if err == nil && (n < least || n > most) {
			err = fmt.Errorf("want %s to %s octets", FormatSize(least), FormatSize(most))
		}
		return n, err
	}}
}

// IntList is the flag at p, which holds its default: integers from least to most.
func IntList(p *[]int, least, most int) pflag.Value {
	return List(p, func(n *int) pflag.Value { return IntRange(n, least, most) })
}

// SizeList is the flag at p, which holds its default: sizes from least to most.
func SizeList(p *[]uint64, least, most uint64) pflag.Value {
	return List(p, func(n *uint64) pflag.Value { return SizeRange(n, least, most) })
}

// List is the flag at p, which holds its default: several values, each of which is what one says.
func List[T any](p *[]T, one func(*T) pflag.Value) pflag.Value {
	text := func(values []T) string {
		words := make([]string, len(values))
		for i := range values {
			words[i] = one(&values[i]).String()
		}
		return strings.Join(words, ",")
	}
	return &value[[]T]{p, one(new(T)).Type() + ",...", text, func(s string) (values []T, err error) {
		for word := range strings.SplitSeq(s, ",") {
			var v T
			if err := one(&v).Set(word); err != nil {
				return nil, err
			}
			values = append(values, v)
		}
		return values, nil
	}}
}

// Word is the flag at p, which holds its default: one of words, each for the value at its place.
func Word[T any](p *T, kind, want string, words []string, values []T) pflag.Value {
	text := func(v T) string {
		return words[slices.IndexFunc(values, func(of T) bool { return reflect.DeepEqual(of, v) })]
	}
	return &value[T]{p, kind, text, func(s string) (v T, err error) {
		i := slices.Index(words, s)
		if i < 0 {
			return v, errors.New(want)
		}
		return values[i], nil
	}}
}

var sizeUnits = []struct {
	suffix string
	factor uint64
}{{"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}}

// parseSize reads a number of octets, with K, M or G for powers of 1024.
func parseSize(s string) (uint64, error) {
	digits, factor := strings.ToUpper(s), uint64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(digits, u.suffix); ok {
			digits, factor = rest, u.factor
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if errors.Is(err, strconv.ErrRange) || n > math.MaxUint64/factor {
		return 0, fmt.Errorf("want less than 2^64 octets")
	}
	if err != nil {
		return 0, fmt.Errorf("want a number of octets such as 4096, 64K or 1M")
	}
	return n * factor, nil
}

// FormatSize is the shortest text that parseSize reads as n.
func FormatSize(n uint64) string {
	for _, u := range sizeUnits {
		if n >= u.factor && n%u.factor == 0 {
			return strconv.FormatUint(n/u.factor, 10) + u.suffix
		}
	}
	return strconv.FormatUint(n, 10)
}
