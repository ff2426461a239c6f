//go:build !race

package vipl

const raceEnabled = false
