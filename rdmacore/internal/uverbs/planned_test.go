//go:build linux && (amd64 || arm64)

package uverbs

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// TestVerbNames: plans know each command of the device that a verb stands for, by its name in libibverbs.
func TestVerbNames(t *testing.T) {
	known := map[string]bool{}
	for _, table := range [][uabi.CommandMask + 1]*command{legacy, extended} {
		for _, c := range table {
			if c != nil && c.verb != "" {
				known[c.verb] = true
				assert.True(t, slices.Contains(fault.Verbs, c.verb), c.verb)
			}
		}
	}
	for _, v := range fault.Verbs {
		assert.True(t, known[v] || strings.HasPrefix(v, "rdma_"), v)
	}
}

// planned is a Config with a plan, by which the RNIC fails too.
func planned(t *testing.T, plan string) Config {
	in, err := fault.ForC(fault.MustParse(plan), nil)
	require.NoError(t, err)
	c := Config{Faults: in}
	c.RNIC.Faults = in
	return c
}

// TestPlannedVerb: the verb that the plan names fails with its errno, after its time, and changes nothing.
func TestPlannedVerb(t *testing.T) {
	p := started(t, planned(t, "verb alloc_pd 2: errno ENOMEM late 20ms"))
	must[uabi.AllocPDResp](p, uabi.CmdAllocPD, &uabi.AllocPD{})
	begun := time.Now()
	_, err := write[uabi.AllocPDResp](p, uabi.CmdAllocPD, &uabi.AllocPD{})
	var r *Refusal
	require.True(t, errors.As(err, &r), err)
	assert.Equal(t, syscall.ENOMEM, r.Errno)
	assert.Equal(t, "by the fault plan", r.Why)
	assert.GreaterOrEqual(t, time.Since(begun), 20*time.Millisecond)
	must[uabi.AllocPDResp](p, uabi.CmdAllocPD, &uabi.AllocPD{})
	assert.Equal(t, 2, entriesOf(&p.file.pds))
}

func entriesOf[T any](t *table[T]) (n int) {
	for range t.All {
		n++
	}
	return n
}

// TestPlannedStatus: the completion that the plan names ends otherwise, and what follows flushes, as of an adapter's queue pair in ERR.
func TestPlannedStatus(t *testing.T) {
	a, b := pair(t, planned(t, "completion 2 of write: status RETRY_EXC_ERR"), allRights)
	for i, want := range []uint32{uabi.WCSuccess, uabi.WCRetryExcErr} {
		a.posted(rdma(signaled(uabi.WRRDMAWrite, i), b, 0), a.sge(0, 8))
		assert.Equal(t, want, a.wait(1)[0].Status, i)
	}
	<-a.verbs().Verbs().Done()
	w := signaled(uabi.WRSend, 3)
	a.posted(w, a.sge(0, 8))
	assert.EqualValues(t, uabi.WCWRFlushErr, a.wait(1)[0].Status)
}
