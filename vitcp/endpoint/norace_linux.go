//go:build !race

package endpoint

func raceRelease() {}

func raceAcquire() {}
