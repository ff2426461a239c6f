// Package expvars publishes the counters of RNICs with package expvar, whose page /debug/vars serves them.
package expvars

import (
	"expvar"

	"github.com/softrnic/softrnic/stats"
	"github.com/softrnic/softrnic/verbs"
)

// Publish publishes the counters of RNICs under a name, as a stats.Snapshot. As expvar.Publish it may be called once for
// a name, and panics the second time. RNICs that are closed keep their counters.
func Publish(name string, nics ...*verbs.RNIC) { expvar.Publish(name, Var(nics...)) }

// Var is a variable with the counters of RNICs.
func Var(nics ...*verbs.RNIC) expvar.Var {
	return expvar.Func(func() any { return stats.Take(nics...) })
}
