//go:build linux && (amd64 || arm64)

package uverbs

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// TestObjects makes one of each kind and destroys them, in an order that works and before in one that does not.
func TestObjects(t *testing.T) {
	p := started(t, Config{})
	pd := p.pd()
	_, mr := p.region(pd, 4096, uabi.AccessLocalWrite)
	cq := p.cq(16, -1)
	qp := p.qp(pd, cq, cq)
	srq := must[uabi.CreateSRQResp](p, uabi.CmdCreateSRQ, &uabi.CreateSRQ{PDHandle: pd, MaxWR: 8, MaxSGE: 1})
	assert.Equal(t, mr.Lkey, mr.Rkey)
	assert.Same(t, p.file.qps.Get(qp.QPHandle), p.dev.QP(qp.QPN))

	_, err := write[uabi.None](p, uabi.CmdDeallocPD, &uabi.DeallocPD{PDHandle: pd})
	assert.Equal(t, syscall.EBUSY, errnoOf(t, err))
	_, err = write[uabi.DestroyCQResp](p, uabi.CmdDestroyCQ, &uabi.DestroyCQ{CQHandle: cq})
	assert.Equal(t, syscall.EBUSY, errnoOf(t, err))

	must[uabi.DestroyQPResp](p, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: qp.QPHandle})
	must[uabi.DestroySRQResp](p, uabi.CmdDestroySRQ, &uabi.DestroySRQ{SRQHandle: srq.SRQHandle})
	must[uabi.DestroyCQResp](p, uabi.CmdDestroyCQ, &uabi.DestroyCQ{CQHandle: cq})
	must[uabi.None](p, uabi.CmdDeregMR, &uabi.DeregMR{MRHandle: mr.MRHandle})
	must[uabi.None](p, uabi.CmdDeallocPD, &uabi.DeallocPD{PDHandle: pd})
	assert.Nil(t, p.dev.QP(qp.QPN))
	_, err = write[uabi.None](p, uabi.CmdDeallocPD, &uabi.DeallocPD{PDHandle: pd})
	assert.Equal(t, syscall.ENOENT, errnoOf(t, err))
}
