//go:build race

package stress

// stacks is how many times as much a goroutine's stack may take with the race detector, whose calls are on it.
const stacks = 2
