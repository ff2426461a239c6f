package stats

import (
	"maps"
	"slices"

	"github.com/softrnic/softrnic/verbs"
)

// Counter is one that a T, the Stats of an object, has.
type Counter[T any] struct {
	Name string
	// Linux is whose name that is: the driver that has it among its statistics (`rdma statistic`), or the
	// command that prints it; empty if Linux has none.
	Linux string
	// Gauge says that it goes down too: how much there is now, or has been at most.
	Gauge bool
	Help  string
	// Label, if not empty, is what tells the values of ByLabel apart; the other counters have One.
	Label   string
	One     func(*T) uint64
	ByLabel func(*T) map[string]uint64
}

func messages(f verbs.Flow) uint64 { return f.Messages }
func segments(f verbs.Flow) uint64 { return f.Segments }
func octets(f verbs.Flow) uint64   { return f.Octets }

// flows is one number of all opcodes one way; those that are zero are left out.
func flows(way *verbs.Flows, of func(verbs.Flow) uint64) map[string]uint64 {
	m := map[string]uint64{}
	for name, f := range way.All() {
		if n := of(f); n > 0 {
			m[name] = n
		}
	}
	return m
}

func statuses(m map[verbs.Status]uint64) map[string]uint64 {
	names := map[string]uint64{}
	for st, n := range m {
		names[st.String()] = n
	}
	return names
}

// Values are the counters of an object: those without a label by name, and those with one by name
// and what is counted there. What never was, such as a status, is not in By.
type Values struct {
	Counters map[string]uint64            `json:"counters"`
	By       map[string]map[string]uint64 `json:"by,omitempty"`
}

// add takes the counters of one table.
func add[T any](v *Values, table []Counter[T], s *T) {
	if v.Counters == nil {
		v.Counters, v.By = map[string]uint64{}, map[string]map[string]uint64{}
	}
	for _, c := range table {
		if c.Label == "" {
			v.Counters[c.Name] = c.One(s)
		} else if m := c.ByLabel(s); len(m) > 0 {
			v.By[c.Name] = m
		}
	}
}

// Sum is the sum of a counter over what its label tells apart.
func (v *Values) Sum(name string) (sum uint64) {
	for _, n := range v.By[name] {
		sum += n
	}
	return sum
}

// Line is a counter as `rdma statistic` would list it.
type Line struct {
	Name  string // with a label in brackets: completions[Success]
	Value uint64
}

// Lines lists the counters by name.
func (v *Values) Lines() (list []Line) {
	for _, name := range slices.Sorted(maps.Keys(v.Counters)) {
		list = append(list, Line{name, v.Counters[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(v.By)) {
		for _, label := range slices.Sorted(maps.Keys(v.By[name])) {
			list = append(list, Line{name + "[" + label + "]", v.By[name][label]})
		}
	}
	return list
}
