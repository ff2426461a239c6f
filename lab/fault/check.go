package fault

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// MaxFor bounds Rule.For and Rule.At.
const MaxFor = 24 * time.Hour

// Check finds what is wrong with the rule, and says what would be right.
func (r *Rule) Check() error {
	allowed, ok := fits[r.When]
	switch {
	case !ok:
		return fmt.Errorf("there is no %q to count: one of %s", r.When, list(whens))
	case !slices.Contains(allowed, r.What):
		return fmt.Errorf("%v goes with one of %s, not with %q", r.When, join(allowed), r.What)
	case r.choices() > 1:
		return fmt.Errorf("a number, every and chance exclude each other")
	case r.Chance < 0 || r.Chance > 1 || r.Chance != r.Chance:
		return fmt.Errorf("a chance is above 0, and 1 at most, not %v", r.Chance)
	case r.When == Time && (r.choices() > 0 || r.Times > 0):
		return fmt.Errorf("time strikes once, at a duration such as 2s")
	case r.When == Octet && (r.Nth == 0 && r.Every == 0 || r.Chance > 0):
		return fmt.Errorf("octet needs a number or every, such as octet 4096")
	case r.Dir > Out:
		return fmt.Errorf("a direction is in, out or neither")
	case r.Dir != Both && (r.When == Connection || r.When >= Registration):
		return fmt.Errorf("%v has no direction", r.When)
	case r.Op != AnyOp && !slices.Contains(opsOf(r.When), r.Op):
		if opsOf(r.When) == nil {
			return fmt.Errorf("%v is of no operation", r.When)
		}
		return fmt.Errorf("%v is of one of %s, not of %q", r.When, join(opsOf(r.When)), r.Op)
	case r.QP != 0 && r.When >= Registration:
		return fmt.Errorf("%v is of no queue pair", r.When)
	case (r.When == Verb) != (r.Verb != "") || r.Verb != "" && !slices.Contains(Verbs, r.Verb):
		return fmt.Errorf("verb is one of %s, not %q", list(Verbs), r.Verb)
	case r.Device != "" && !plainName(r.Device):
		return fmt.Errorf("device takes a name such as softrnic0, not %q", r.Device)
	case r.Connection != 0 && !r.When.onStream():
		return fmt.Errorf("%v is on no connection: only what is counted on streams is (%s)", r.When, join([]When{Segment, Message, Octet, Time}))
	case r.At < 0 || r.At > MaxFor || r.For < 0 || r.For > MaxFor:
		return fmt.Errorf("a time is within 0s to %v", MaxFor)
	}
	return r.checkWhat()
}

func (r *Rule) checkWhat() error {
	switch r.What {
	case Stall, Delay:
		if r.For == 0 {
			return fmt.Errorf("%v needs how long, such as %v 50ms", r.What, r.What)
		}
	case Split:
		if r.When != Octet && r.N < 1 {
			return fmt.Errorf("split needs how many octets of the segment go alone, such as split 3")
		}
	case Coalesce:
		if r.N < 2 || r.N > 1000 {
			return fmt.Errorf("coalesce needs how many segments, 2 to 1000, such as coalesce 4")
		}
	case Flip:
		if r.N < -1 || r.N >= 1<<20 {
			return fmt.Errorf("flip takes a bit from 0 to %d", 1<<20-1)
		}
		if r.When == Octet && !r.Behind {
			return fmt.Errorf("flip at an octet is behind the CRC: flip behind crc")
		}
	case Errno:
		if errnos[r.Errno] == 0 {
			return fmt.Errorf("errno takes one of %s, not %q", list(slices.Sorted(maps.Keys(errnos))), r.Errno)
		}
	case Status:
		if index(statuses, r.Status) < 1 {
			return fmt.Errorf("status takes one of %s, not %q", list(statuses[1:]), r.Status)
		}
	case IRD:
		if r.N < 0 || r.N > 0x3FFE {
			return fmt.Errorf("ird takes 0 to %d", 0x3FFE)
		}
	default:
	}
	return nil
}

func (r *Rule) choices() (n int) {
	for _, set := range []bool{r.Nth > 0, r.Every > 0, r.Chance != 0} {
		if set {
			n++
		}
	}
	return n
}

// Check finds what is wrong with the plan. The error names the rule, by its line if it has one.
func (p *Plan) Check() error {
	for i := range p.Rules {
		r := &p.Rules[i]
		err := r.Check()
		switch {
		case err != nil && r.Line > 0:
			return fmt.Errorf("line %d: %w", r.Line, err)
		case err != nil:
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return nil
}
