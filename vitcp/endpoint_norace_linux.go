//go:build !race

package vitcp

func raceRelease() {}

func raceAcquire() {}
