package verbs_test

import (
	"bytes"
	"fmt"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/lab/rnictest"
	"github.com/softrnic/softrnic/verbs"
)

// goroutinesOf are the goroutines of a profile whose labels have nic's ID, each with its stack.
func goroutinesOf(nic *verbs.RNIC) (list []string) {
	var b bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
	for g := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(g, labelPair("rnic", nic.ID().String())) {
			list = append(list, g)
		}
	}
	return list
}

// labelPair is a label as a profile has it.
func labelPair(key, value string) string { return fmt.Sprintf("%q:%q", key, value) }

// requireLabeled finds a goroutine of nic that has all of what.
func requireLabeled(t *testing.T, nic *verbs.RNIC, what ...string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) { // one that was just started may have none yet
		for _, g := range goroutinesOf(nic) {
			if !slices.ContainsFunc(what, func(w string) bool { return !strings.Contains(g, w) }) {
				return
			}
		}
		assert.Fail(c, "no goroutine", "with %v among\n%s", what, strings.Join(goroutinesOf(nic), "\n\n"))
	}, 10*time.Second, time.Millisecond)
}

// TestLabels finds the goroutines of an RNIC by their labels: those of a stream of a pipe, the background poller of a stream of TCP, and
// those that call handlers. When it is closed there are none.
func TestLabels(t *testing.T) {
	for _, loopback := range []bool{false, true} {
		t.Run(fmt.Sprintf("loopback %t", loopback), func(t *testing.T) {
			a, _ := rnictest.Pair(t, rnictest.Config{Loopback: loopback})
			qp, cq := labelPair("qp", strconv.Itoa(int(a.QP.ID()))), labelPair("cq", strconv.Itoa(int(a.CQ.ID())))
			if loopback {
				requireLabeled(t, a.NIC, labelPair("softrnic", "background poller"), cq, "(*Group).backgroundLoop")
			} else {
				requireLabeled(t, a.NIC, labelPair("softrnic", "read"), qp, "(*pump).readLoop")
				requireLabeled(t, a.NIC, labelPair("softrnic", "write"), qp, "(*pump).writeLoop")
			}

			handled, free := make(chan struct{}), make(chan struct{})
			require.NoError(t, a.NIC.SetEventHandler(func(verbs.Event) {
				close(handled)
				<-free
			}))
			fault.Provoke(a.CQ)
			<-handled
			requireLabeled(t, a.NIC, labelPair("softrnic", "event handler"))
			close(free)
			require.NoError(t, a.NIC.SetEventHandler(nil))

			require.NoError(t, a.NIC.Close())
			require.Eventually(t, func() bool { return len(goroutinesOf(a.NIC)) == 0 }, // the last may be about to return
				10*time.Second, time.Millisecond)
		})
	}
}

// TestLabelsOfCompletionHandler finds the goroutine that calls one.
func TestLabelsOfCompletionHandler(t *testing.T) {
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, nic.Close()) }()
	handled, free := make(chan struct{}), make(chan struct{})
	defer close(free)
	h, err := nic.AddCompletionHandler(func(*verbs.CQ) {
		close(handled)
		<-free
	})
	require.NoError(t, err)
	cq, err := nic.CreateCQ(verbs.CQConfig{Handler: h})
	require.NoError(t, err)
	qp, err := nic.CreateEndpoint(verbs.QPConfig{SendCQ: cq, RecvCQ: cq})
	require.NoError(t, err)
	require.NoError(t, cq.Notify(verbs.NotifyNext))
	_, err = qp.PostRecv(verbs.Recv{})
	require.NoError(t, err)
	require.NoError(t, qp.Modify(verbs.ModifyQP{Next: verbs.StateError})) // flushes it
	<-handled
	requireLabeled(t, nic, labelPair("softrnic", "completion handler"))
}
