package rnictest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/docgen"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// again is a plan of rules that count messages, octets of the stream, posts, completions, connections and registrations. None ends a stream.
const again = `seed 11
message chance 0.2: split 7
message chance 0.1 out: delay 1ms
message every 9 in of send: stall 1ms
message chance 0.1 in connection 2: coalesce 2 1ms
octet every 5000: split
octet 3000 out connection 3: stall 1ms
post chance 0.1: fail
post every 13 of recv: fail
completion chance 0.2: delay 1ms
completion 17 of send: delay 2ms
connection chance 0.5: ird 1
registration chance 0.3: fail
`

// strikes runs a program of three connections, one after the other, with the plan in a's RNIC, and lists what has struck.
func strikes(t *testing.T, c Config) string {
	var mu sync.Mutex
	var list []string
	in, err := fault.New(fault.MustParse(again), func(s fault.Strike) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, fmt.Sprintf("%v: %d", s, s.Seen))
	})
	require.NoError(t, err)
	c.CM.NoNudge, c.CM.Model = true, cm.ClientServer // the plan counts messages
	l := &log{}
	nic, err := verbs.Open(verbs.Config{Faults: in})
	require.NoError(t, err)
	for range 3 {
		a := &End{NIC: nic, t: t}
		require.NoError(t, a.create(c))
		b, err := open(t, c, l, "")
		require.NoError(t, err)
		na, nb, err := connection(c.Loopback)
		require.NoError(t, err)
		require.NoError(t, connect(a, b, na, nb, c))
		chat(t, a, b)
		require.NoError(t, a.Conn.Close())
		require.NoError(t, b.Over())
		require.NoError(t, a.Over())
		require.NoError(t, b.NIC.Close())
	}
	require.NoError(t, nic.Close())
	slices.Sort(list) // what strikes side by side has no order
	return strings.Join(list, "\n") + "\n"
}

// chat is 40 Sends of a, each answered by one of b, of 30 to 990 octets. What the plan makes fail is done again.
func chat(t *testing.T, a, b *End) {
	memory := func(e *End) (mr *verbs.MR) {
		for err := error(nil); mr == nil; {
			if mr, err = e.QP.PD().Register(make([]byte, size), All); err != nil {
				require.ErrorIs(t, err, verbs.ErrInsufficientResources)
			}
		}
		return mr
	}
	post := func(try func() (int, error)) {
		for {
			n, err := try()
			if n == 1 {
				require.NoError(t, err)
				return
			}
			var by *fault.Error
			require.ErrorAs(t, err, &by)
		}
	}
	one, two := memory(a), memory(b)
	for i := range 40 {
		n := 30 + 24*i
		for _, way := range []struct {
			from, to     *End
			source, sink *verbs.MR
		}{{a, b, one, two}, {b, a, two, one}} {
			post(func() (int, error) { return way.to.QP.PostRecv(verbs.Recv{SGL: way.sink.All()}) })
			post(func() (int, error) { return way.from.QP.PostSend(verbs.Request{SGL: way.source.SGL(0, n)}) })
			for _, e := range []*End{way.from, way.to} {
				require.NoError(t, e.Wait().Err())
			}
		}
	}
}

// TestSameFaultsAgain: the same plan and seed give the same faults, run after run, over TCP and over a pipe, and whichever way the data path takes (make
// paths): those that testdata has.
func TestSameFaultsAgain(t *testing.T) {
	var list string
	const file = "testdata/strikes.txt"
	if *docgen.Update {
		over(t, func(t *testing.T, c Config) { list = strikes(t, c) })
		require.NoError(t, os.WriteFile(file, []byte(list), 0o644))
	}
	golden, err := os.ReadFile(file)
	require.NoError(t, err)
	list = string(golden)
	for range 2 {
		over(t, func(t *testing.T, c Config) { assert.Equal(t, list, strikes(t, c)) })
	}
	for _, when := range []string{"message", "octet", "post", "completion", "connection", "registration"} {
		assert.Contains(t, list, ": "+when)
	}
}
