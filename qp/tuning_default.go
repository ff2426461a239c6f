//go:build !slowpaths && !fastpaths

package qp

// defaultTuning leaves the defaults as they are. The build tags slowpaths and
// fastpaths are for tests: all tests shall pass with the fast paths never taken,
// and with them taken wherever they can be.
var defaultTuning Tuning
