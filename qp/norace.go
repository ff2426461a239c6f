//go:build !race || !linux

package qp

func raceRelease() {}

func raceAcquire() {}
