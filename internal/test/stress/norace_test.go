//go:build !race

package stress

const stacks = 1
