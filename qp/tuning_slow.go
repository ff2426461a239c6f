//go:build slowpaths

package qp

// defaultTuning takes no fast path but one: large segments are sent from where they
// are, or none could break off within. Segments stay as they are: the models'
// messages are to fit one.
var defaultTuning = Tuning{Gather: 4 << 10, Short: -1, Eager: -1, Direct: -1, ReadSpin: -1, WriteSpin: -1, Drive: -1}
