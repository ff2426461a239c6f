//go:build race

package vipl

// raceEnabled: the race detector allocates for itself.
const raceEnabled = true
