// Package proflabel labels the goroutines of an RNIC, for profiles and stack dumps (runtime/pprof): what each does, for
// which RNIC and, where it serves one, for which queue pair or completion queue.
package proflabel

import (
	"context"
	"runtime/pprof"
)

// Work is the key of what a goroutine does; RNIC, QP and CQ are those of what it serves.
const (
	Work = "softrnic"
	RNIC = "rnic"
	QP   = "qp"
	CQ   = "cq"
)

// Set is labels of a goroutine. The zero Set has none.
type Set struct{ ctx context.Context }

// With is s and more, a key and a value in turn.
func (s Set) With(more ...string) Set {
	ctx := s.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	return Set{pprof.WithLabels(ctx, pprof.Labels(more...))}
}

// Wear labels the calling goroutine, and those that it starts from here on, with s in place of what it inherited. It does not
// allocate.
func (s Set) Wear() {
	if s.ctx != nil {
		pprof.SetGoroutineLabels(s.ctx)
	}
}
