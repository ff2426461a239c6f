//go:build linux && (amd64 || arm64)

package uverbs

import (
	"testing"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// TestInventory: of a program that destroys what it has made, and of one that ends with it, nothing is left.
func TestInventory(t *testing.T) {
	leakcheck.Inventory(t)
	p := started(t, Config{})
	q := openOf(t, p.dev)
	q.context()
	for _, p := range []*program{p, q} {
		pd, ch := p.pd(), p.channel()
		cq := p.cq(16, int32(ch))
		srq := must[uabi.CreateSRQResp](p, uabi.CmdCreateSRQ, &uabi.CreateSRQ{PDHandle: pd, MaxWR: 8, MaxSGE: 1})
		qp := p.qp(pd, cq, cq)
		if p == q {
			p.file.Close()
			continue
		}
		must[uabi.DestroyQPResp](p, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: qp.QPHandle})
		must[uabi.DestroySRQResp](p, uabi.CmdDestroySRQ, &uabi.DestroySRQ{SRQHandle: srq.SRQHandle})
		must[uabi.DestroyCQResp](p, uabi.CmdDestroyCQ, &uabi.DestroyCQ{CQHandle: cq})
	}
}
