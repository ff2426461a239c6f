package fault

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/wr"
)

// MaxRules bounds the rules of a text.
const MaxRules = 10_000

// Parse reads a plan. A line is empty, a rule, or the seed, and ends at a #:
//
//	seed N
//	WHEN [N | every N | chance P | DURATION] [in|out] [of OP] [qp N] [connection N] [device NAME] [times N]: WHAT
//
// WHEN is segment, message, octet, time, connection, post, completion or registration, and of C programs verb NAME or open; OP is send, write, read,
// response, immediate, atomic, atomic-response, terminate, recv or memory. WHAT is one of
//
//	cut, reset, half-close         ends the stream, or this direction
//	stall D, delay D               holds all up, or delivers later
//	split N, coalesce N [D]        octets of the segment alone; segments together, waiting D at most (20ms)
//	flip [BIT] before|behind crc   turns a bit of the payload
//	drop, double, terminate CODE   a segment; a Terminate Message such as 0x1202 ahead of it
//	invalidate stag                that the segment or post names
//	refuse, ird N                  a connection; how many inbound RDMA Reads stay
//	fail                           a post, a registration
//	delay D, full                  a completion; the CQ has no room for it
//	errno NAME [late D], delay D   a verb of a C program
//	status NAME                    a completion, as a C program sees it, and its queue pair is in error
//	no device                      an open of a C program
//
// The former words late, lump and lose stag are good for delay, coalesce and invalidate stag. An error names the line and
// what is allowed there.
func Parse(text string) (*Plan, error) {
	p := &Plan{}
	n := 0
	seeded := false
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(strings.ReplaceAll(line, ":", " : "))
		if len(words) == 0 {
			continue
		}
		var err error
		if words[0] == "seed" {
			if seeded {
				err = fmt.Errorf("there is a seed already")
			} else if len(words) != 2 {
				err = fmt.Errorf("seed takes one number, such as seed 7")
			} else if p.Seed, err = strconv.ParseUint(words[1], 10, 64); err != nil {
				err = fmt.Errorf("seed takes a number from 0 to 18446744073709551615, not %q", words[1])
			}
			seeded = true
		} else {
			var r Rule
			if r, err = parseRule(words); err == nil {
				r.Line = n
				p.Rules = append(p.Rules, r)
			}
			if len(p.Rules) > MaxRules {
				err = fmt.Errorf("a plan has %d rules at most", MaxRules)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return p, nil
}

// MustParse is Parse for tests: it panics on an error.
func MustParse(text string) *Plan {
	p, err := Parse(text)
	if err != nil {
		panic("fault: " + err.Error())
	}
	return p
}

// words are what is left of one part of a rule.
type words []string

func (w *words) next() (s string) {
	if len(*w) > 0 {
		s, *w = (*w)[0], (*w)[1:]
	}
	return s
}

func (w *words) is(s string) bool {
	if len(*w) > 0 && (*w)[0] == s {
		*w = (*w)[1:]
		return true
	}
	return false
}

// number takes a number of at least least.
func (w *words) number(of string, least uint64) (uint64, error) {
	s := w.next()
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || n < least {
		return 0, fmt.Errorf("%s takes a number, %d or more, not %q", of, least, s)
	}
	return n, nil
}

func (w *words) duration(of string) (time.Duration, error) {
	s := w.next()
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s takes a duration such as 50ms or 2s, not %q", of, s)
	}
	return d, nil
}

func parseRule(all []string) (r Rule, err error) {
	colon := slices.Index(all, ":")
	if colon < 0 {
		return r, fmt.Errorf("a rule is WHEN: WHAT, such as segment 5 in: drop; there is no colon")
	}
	when, what := words(all[:colon]), words(all[colon+1:])
	if err = r.parseWhen(&when); err != nil {
		return r, err
	}
	if err = r.parseWhat(&what); err != nil {
		return r, err
	}
	if len(what) > 0 {
		return r, fmt.Errorf("%q behind %v: a rule ends there", strings.Join(what, " "), r.What)
	}
	err = r.Check()
	return r, err
}

func (r *Rule) parseWhen(w *words) (err error) {
	name := w.next()
	i := index(whens, name)
	if i < 0 {
		return fmt.Errorf("a rule begins with seed or one of %s, not with %q", list(whens), name)
	}
	r.When = When(i)
	switch r.When {
	case Time:
		if r.At, err = w.duration(name); err != nil {
			return err
		}
	case Verb:
		r.Verb = w.next()
		if says := insteadOf[r.Verb]; says != "" {
			return fmt.Errorf("verb %s: %s", r.Verb, says)
		}
		if index(Verbs, r.Verb) < 0 {
			return fmt.Errorf("verb is one of %s, not %q", list(Verbs), r.Verb)
		}
	default:
	}
	for len(*w) > 0 && err == nil {
		err = r.parseLimit(w)
	}
	return err
}

// parseLimit takes what makes the rule a narrower one.
func (r *Rule) parseLimit(w *words) (err error) {
	var n uint64
	switch {
	case (*w)[0][0] >= '0' && (*w)[0][0] <= '9':
		r.Nth, err = w.number(r.When.String(), 1)
	case w.is("every"):
		r.Every, err = w.number("every", 1)
	case w.is("chance"):
		s := w.next()
		if r.Chance, err = strconv.ParseFloat(s, 64); err != nil || !(r.Chance > 0 && r.Chance <= 1) {
			return fmt.Errorf("chance takes a number above 0, and 1 at most, such as 0.01, not %q", s)
		}
	case w.is("in"):
		r.Dir = In
	case w.is("out"):
		r.Dir = Out
	case w.is("of"):
		s := w.next()
		i := index(ops, s)
		if i < 0 {
			return fmt.Errorf("of takes one of %s, not %q", list(ops), s)
		}
		r.Op = Op(i)
	case w.is("qp"):
		n, err = w.number("qp", 1)
		if err == nil && n >= 1<<32 {
			return fmt.Errorf("qp takes a number below %d", uint64(1)<<32)
		}
		r.QP = wr.QPID(n)
	case w.is("connection"):
		r.Connection, err = w.number("connection", 1)
	case w.is("device"):
		r.Device = w.next()
		if !plainName(r.Device) {
			return fmt.Errorf("device takes a name such as softrnic0, not %q", r.Device)
		}
	case w.is("times"):
		r.Times, err = w.number("times", 1)
	default:
		return fmt.Errorf("%q: what may stand before the colon is a number, every N, chance P, in, out, of OP, qp N, connection N, device NAME, times N", (*w)[0])
	}
	return err
}

// formerly are words for faults that plans had, and what they are called now.
var formerly = map[string]string{"late": "delay", "lump": "coalesce", "lose stag": "invalidate stag"}

func (r *Rule) parseWhat(w *words) (err error) {
	name := w.next()
	if (name == "lose" || name == "invalidate") && w.is("stag") {
		name += " stag"
	}
	if name == "no" && w.is("device") {
		name += " device"
	}
	if now, ok := formerly[name]; ok {
		name = now
	}
	i := index(whats, name)
	if i < 0 {
		return fmt.Errorf("behind the colon of %v stands one of %s, not %q", r.When, join(fits[r.When]), name)
	}
	r.What = What(i)
	var n uint64
	switch r.What {
	case Stall, Delay:
		r.For, err = w.duration(name)
	case Split:
		if r.When != Octet {
			n, err = w.number(name, 1)
		}
	case Coalesce:
		if n, err = w.number(name, 2); err == nil && len(*w) > 0 {
			r.For, err = w.duration(name)
		}
	case IRD:
		n, err = w.number(name, 0)
	case Flip:
		return r.parseFlip(w)
	case Terminate:
		s := w.next()
		n, err = strconv.ParseUint(s, 0, 16)
		if err != nil {
			return fmt.Errorf("terminate takes a code of 16 bits such as 0x1202 (layer, type, code), not %q", s)
		}
		r.Code = uint16(n)
		return nil
	case Errno:
		r.Errno = w.next()
		if w.is("late") {
			r.For, err = w.duration("late")
		}
		return err
	case Status:
		r.Status = w.next()
		return nil
	default:
	}
	r.N = int(min(n, 1<<30))
	return err
}

func (r *Rule) parseFlip(w *words) (err error) {
	r.N = -1
	if len(*w) > 0 && (*w)[0] != "before" && (*w)[0] != "behind" {
		var n uint64
		if n, err = w.number("flip", 0); err != nil {
			return err
		}
		r.N = int(min(n, 1<<30))
	}
	side := w.next()
	if side != "before" && side != "behind" || !w.is("crc") {
		return fmt.Errorf("flip is before crc, which is right again then, or behind crc, such as flip 3 behind crc")
	}
	r.Behind = side == "behind"
	return nil
}

func index(names []string, s string) int {
	if s == "" {
		return -1
	}
	return slices.Index(names, s)
}
