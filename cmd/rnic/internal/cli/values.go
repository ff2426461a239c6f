package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// onOff is a flag with the values on and off.
type onOff bool

// OnOff is the flag at p.
func OnOff(p *bool) *onOff { return (*onOff)(p) }

func (o *onOff) String() string {
	if *o {
		return "on"
	}
	return "off"
}

func (o *onOff) Set(s string) error {
	switch s {
	case "on":
		*o = true
	case "off":
		*o = false
	default:
		return fmt.Errorf("want on or off")
	}
	return nil
}

func (o *onOff) Type() string { return "on|off" }

// intRange is a flag with an integer from min to max.
type intRange struct {
	p        *int
	min, max int
}

// IntRange is the flag at p, which holds its default.
func IntRange(p *int, least, most int) *intRange { return &intRange{p, least, most} }

func (r *intRange) String() string {
	if r.p == nil {
		return "0"
	}
	return strconv.Itoa(*r.p)
}

func (r *intRange) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < r.min || n > r.max {
		return fmt.Errorf("want a number from %d to %d", r.min, r.max)
	}
	*r.p = n
	return nil
}

func (r *intRange) Type() string { return "int" }

// list is a flag with several values, each of which is what one says.
type list[T any] struct {
	p   *[]T
	one func(*T) pflag.Value
}

// IntList is the flag at p, which holds its default: integers from least to most.
func IntList(p *[]int, least, most int) pflag.Value {
	return &list[int]{p, func(n *int) pflag.Value { return IntRange(n, least, most) }}
}

// SizeList is the flag at p, which holds its default: sizes from least to most.
func SizeList(p *[]uint64, least, most uint64) pflag.Value {
	return &list[uint64]{p, func(n *uint64) pflag.Value { return SizeRange(n, least, most) }}
}

func (l *list[T]) String() string {
	if l.p == nil {
		return ""
	}
	words := make([]string, len(*l.p))
	for i := range words {
		words[i] = l.one(&(*l.p)[i]).String()
	}
	return strings.Join(words, ",")
}

func (l *list[T]) Set(s string) error {
	var values []T
	for word := range strings.SplitSeq(s, ",") {
		var v T
		if err := l.one(&v).Set(word); err != nil {
			return err
		}
		values = append(values, v)
	}
	*l.p = values
	return nil
}

func (l *list[T]) Type() string { return l.one(new(T)).Type() + ",..." }

// durationRange is a flag with a time from min to max.
type durationRange struct {
	p        *time.Duration
	min, max time.Duration
}

// DurationRange is the flag at p, which holds its default.
func DurationRange(p *time.Duration, least, most time.Duration) *durationRange {
	return &durationRange{p, least, most}
}

func (r *durationRange) String() string {
	if r.p == nil {
		return "0s"
	}
	return r.p.String()
}

func (r *durationRange) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil || d < r.min || d > r.max {
		return fmt.Errorf("want a time from %v to %v, such as 500ms", r.min, r.max)
	}
	*r.p = d
	return nil
}

func (r *durationRange) Type() string { return "duration" }

// sizeRange is a flag with a number of octets from min to max: 4096, 64K, 1M.
type sizeRange struct {
	p        *uint64
	min, max uint64
}

// SizeRange is the flag at p, which holds its default.
func SizeRange(p *uint64, least, most uint64) *sizeRange { return &sizeRange{p, least, most} }

func (r *sizeRange) String() string {
	if r.p == nil {
		return "0"
	}
	return FormatSize(*r.p)
}

func (r *sizeRange) Set(s string) error {
	n, err := parseSize(s)
	if err != nil {
		return err
	}
	if n < r.min || n > r.max {
		return fmt.Errorf("want %s to %s octets", FormatSize(r.min), FormatSize(r.max))
	}
	*r.p = n
	return nil
}

func (r *sizeRange) Type() string { return "size" }

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
