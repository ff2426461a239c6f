package fault

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/verbs"
)

// Link is the state of an RNIC's port. The zero value is up, and as fast as it goes.
type Link struct {
	// Down lets nothing through, in either direction, of streams that there are and that begin. Nothing is lost: what has been
	// sent waits, and goes on when the port is up; over TCP on Linux, which hears nothing either, after twice the time at most. Nor
	// does a stream end by it; the peer sees silence.
	Down bool
	// Rate bounds all streams together, each way, in octets a second, from LeastRate on; 0: it does not.
	Rate int64
	// Delay is how long what has come waits before it is received, MaxDelay at most: a round trip takes so much longer.
	Delay time.Duration
	// Loss is which part of the arriving packets is lost, 0 to MostLoss, of TCP on Linux alone, which sends them again. It is
	// drawn by the system, and no seed gives it again.
	Loss float64
}

// The bounds of a Link.
const (
	LeastRate = 1000
	MaxDelay  = time.Minute
	MostLoss  = 0.9
)

// Check finds what is out of range.
func (l Link) Check() error {
	switch {
	case l.Rate != 0 && l.Rate < LeastRate:
		return fmt.Errorf("a rate is %d octets a second or more, not %d", LeastRate, l.Rate)
	case l.Delay < 0 || l.Delay > MaxDelay:
		return fmt.Errorf("a delay is within 0s to %v, not %v", MaxDelay, l.Delay)
	case !(l.Loss >= 0 && l.Loss <= MostLoss):
		return fmt.Errorf("a loss is within 0%% to %v%%, not %v%%", 100*MostLoss, 100*l.Loss)
	}
	return nil
}

// Degraded reports whether the port is slower than it could be.
func (l Link) Degraded() bool { return l.Rate != 0 || l.Delay != 0 || l.Loss != 0 }

// Degradation is what there is of a rate, a delay and a loss, as ParseDegradation reads it; "" for none.
func (l Link) Degradation() string {
	var s []string
	if l.Rate != 0 {
		s = append(s, Rate(l.Rate))
	}
	if l.Delay != 0 {
		s = append(s, l.Delay.String())
	}
	if l.Loss != 0 {
		s = append(s, strconv.FormatFloat(100*l.Loss, 'g', -1, 64)+"%")
	}
	return strings.Join(s, " ")
}

// SetLink has the port of the RNIC be so from now on. The trace has it, and the counters by its kind. The error is Check's.
func SetLink(nic *verbs.RNIC, l Link) error {
	if err := l.Check(); err != nil {
		return fmt.Errorf("fault: %w", err)
	}
	was := LinkOf(nic)
	verbsinternal.SetLink(nic, verbsinternal.Link(l))
	if kind, what := linkChange(was, l); kind != "" {
		verbsinternal.TellFault(nic, kind, what)
	}
	return nil
}

// linkChange is the kind of a change, and what it is.
func linkChange(was, is Link) (kind, what string) {
	slower := was
	slower.Down = is.Down
	switch {
	case is == was:
		return "", ""
	case is == Link{}:
		return "port up", "the port is up, and as fast as it goes"
	case is.Down && !was.Down:
		return "port down", "the port is down"
	case was.Down && !is.Down && is == slower:
		return "port up", "the port is up"
	}
	return "degrade", "the port is degraded: " + is.Degradation()
}

// LinkOf is the state of the port.
func LinkOf(nic *verbs.RNIC) Link { return Link(verbsinternal.LinkOf(nic)) }

// ParseDegradation reads what a port is degraded to: a rate such as 10g or 300m, in bits a second, a delay such as 5ms, a loss such as
// 1%; one of each at most, with spaces or commas between.
func ParseDegradation(text string) (l Link, err error) {
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
	if len(parts) == 0 {
		return l, errDegradation
	}
	for _, part := range parts {
		if err := l.degrade(part); err != nil {
			return l, err
		}
	}
	return l, l.Check()
}

var errDegradation = errors.New("a port is degraded to a rate such as 10g or 300m (bits a second), a delay such as 5ms, a loss such as 1%")

func (l *Link) degrade(part string) error {
	once := fmt.Errorf("%s: there is one of that kind already", part)
	if loss, ok := strings.CutSuffix(part, "%"); ok {
		v, err := strconv.ParseFloat(loss, 64)
		switch {
		case err != nil || !(v > 0):
			return fmt.Errorf("%s: %w", part, errDegradation)
		case l.Loss != 0:
			return once
		}
		l.Loss = v / 100
		return nil
	}
	if d, err := time.ParseDuration(part); err == nil && d > 0 && !isRate(part) {
		if l.Delay != 0 {
			return once
		}
		l.Delay = d
		return nil
	}
	rate, err := ParseRate(part)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", part, errDegradation)
	case l.Rate != 0:
		return once
	}
	l.Rate = rate
	return nil
}

// isRate tells 10m, which is a rate, from a delay of ten minutes, which is none.
func isRate(part string) bool { return strings.HasSuffix(part, "m") }

// ParseRate reads a rate in bits a second, such as 10g, 2.5g, 300m or 64k, as octets a second.
func ParseRate(text string) (int64, error) {
	units := map[byte]float64{'k': 1e3, 'm': 1e6, 'g': 1e9}
	text = strings.ToLower(text)
	if len(text) > 1 {
		if unit, ok := units[text[len(text)-1]]; ok {
			if v, err := strconv.ParseFloat(text[:len(text)-1], 64); err == nil && v*unit/8 >= 1 && v*unit/8 < 1<<60 {
				return int64(v * unit / 8), nil
			}
		}
	}
	return 0, fmt.Errorf("a rate is such as 10g, 300m or 64k, in bits a second, not %q", text)
}

// Rate is a rate as ParseRate reads it.
func Rate(octets int64) string {
	bits := 8 * float64(octets)
	for _, u := range []struct {
		unit string
		of   float64
	}{{"g", 1e9}, {"m", 1e6}} {
		if bits >= u.of {
			return strconv.FormatFloat(bits/u.of, 'g', 6, 64) + u.unit
		}
	}
	return strconv.FormatFloat(bits/1e3, 'g', 6, 64) + "k"
}
