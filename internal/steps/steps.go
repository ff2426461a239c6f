// Package steps is how package cm tells an RNIC that traces which step of connecting it has come to. No program reaches it.
package steps

// Tell tells the RNIC of a queue pair, a *verbs.QP: the step, and what came of it. Package verbs sets it. It does nothing unless the
// RNIC traces.
var Tell func(qp any, step string, err error)
