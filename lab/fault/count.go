package fault

import "math/rand/v2"

// counter is a rule on one connection and direction, or where else it counts on its own.
type counter struct {
	*Rule
	seen, struck uint64
	random       *rand.Rand
}

// place is where a counter counts: a connection's number or a queue pair's identifier, and a direction.
type place struct {
	at  uint64
	dir Direction
}

// newCounter makes the counter of rule number i at p. Its generator depends on nothing else.
func (plan *Plan) newCounter(i int, p place) *counter {
	key := uint64(i)<<2 | uint64(p.dir)
	return &counter{Rule: &plan.Rules[i], random: rand.New(rand.NewPCG(plan.Seed^key<<32, p.at))}
}

// hit counts one more, and reports whether the rule strikes.
func (c *counter) hit() bool {
	c.seen++
	var hit bool
	switch {
	case c.Nth > 0:
		hit = c.seen == c.Nth
	case c.Every > 0:
		hit = c.seen%c.Every == 0
	case c.Chance > 0:
		hit = c.random.Float64() < c.Chance // drawn each time: what struck before does not matter
	default:
		hit = true
	}
	return hit && c.spend()
}

// spend counts a strike, unless there were Times already.
func (c *counter) spend() bool {
	if c.Times > 0 && c.struck >= c.Times {
		return false
	}
	c.struck++
	return true
}

// within is where in the next n octets behind pos the rule strikes next, in octets from there: 0 to n-1.
func (c *counter) within(pos, n, from uint64) (off uint64, ok bool) {
	switch {
	case c.Nth > 0 && c.Nth >= pos+from && c.Nth < pos+n:
		off = c.Nth - pos
	case c.Every > 0:
		next := max((pos+from+c.Every-1)/c.Every, 1) * c.Every
		if next >= pos+n {
			return 0, false
		}
		off = next - pos
	default:
		return 0, false
	}
	return off, c.spend()
}
