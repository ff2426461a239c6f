//go:build !race

package qp

func raceRelease() {}

func raceAcquire() {}
