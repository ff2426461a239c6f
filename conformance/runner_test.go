package conformance_test

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
)

// exchange sends two octets and receives three, over a stream that is recorded.
func exchange(t *conformance.T) {
	a, b := net.Pipe()
	defer b.Close()
	c := t.Trace().Conn(a)
	defer c.Close()
	go func() {
		_, _ = io.ReadFull(b, make([]byte, 2))
		_, _ = b.Write([]byte("abc"))
	}()
	_, err := c.Write([]byte("hi"))
	require.NoError(t, err)
	_, err = io.ReadFull(c, make([]byte, 3))
	require.NoError(t, err)
}

// What a case sent and received is kept if it did not pass, or if that is asked for; how
// much it was, always.
func TestTracesAreKept(t *testing.T) {
	all := []conformance.Case{
		{Name: "1/passes", Need: conformance.NeedAPI, Run: exchange},
		{Name: "1/fails", Need: conformance.NeedAPI, Run: func(t *conformance.T) { exchange(t); t.Errorf("no") }},
		{Name: "1/skips", Need: conformance.NeedAPI, Run: func(t *conformance.T) { exchange(t); t.Skipf("no") }},
	}
	for _, kept := range []bool{false, true} {
		results, err := conformance.Run(t.Context(), all, conformance.InProcess{}, conformance.Options{Traces: kept})
		require.NoError(t, err)
		for _, r := range results {
			assert.Equal(t, conformance.Traffic{Streams: 1, Sent: 2, Received: 3}, r.Traffic, r.Case)
			if r.Verdict == conformance.Pass && !kept {
				assert.Empty(t, r.Trace)
				continue
			}
			require.GreaterOrEqual(t, len(r.Trace), 2, r.Case)
			assert.Equal(t, "hi", string(r.Trace[0].Octets))
			assert.Equal(t, "abc", string(r.Trace[1].Octets))
		}
	}
}

// A trace that is full makes room for the latest streams; of one alone it has the beginning.
func TestTraceIsBounded(t *testing.T) {
	send := func(t *conformance.T, total int) {
		a, b := net.Pipe()
		defer b.Close()
		c := t.Trace().Conn(a)
		defer c.Close()
		go func() { _, _ = io.Copy(io.Discard, b) }()
		for range total / 4096 {
			_, err := c.Write(make([]byte, 4096))
			require.NoError(t, err)
		}
	}
	all := []conformance.Case{
		{Name: "1/long", Need: conformance.NeedAPI, Run: func(t *conformance.T) { send(t, 3<<20) }},
		{Name: "1/many", Need: conformance.NeedAPI, Run: func(t *conformance.T) {
			for range 4 {
				send(t, 512<<10)
			}
		}},
	}
	results, err := conformance.Run(t.Context(), all, conformance.InProcess{}, conformance.Options{Traces: true})
	require.NoError(t, err)
	kept := func(r conformance.Result) map[int]int {
		octets := map[int]int{}
		for _, m := range r.Trace {
			if m.Stream > 0 {
				octets[m.Stream] += len(m.Octets)
			}
		}
		return octets
	}
	assert.Equal(t, map[int]int{1: 1 << 20}, kept(results[0]))
	assert.Equal(t, 3<<20, results[0].Traffic.Sent)
	assert.Equal(t, map[int]int{3: 512 << 10, 4: 512 << 10}, kept(results[1]))
	assert.Equal(t, 2<<20, results[1].Traffic.Sent)
}

// What fails in a part of a part is told with both, and what fails behind them with neither.
func TestParts(t *testing.T) {
	results, err := conformance.Run(t.Context(), []conformance.Case{{Name: "1/parts", Need: conformance.NeedAPI, Run: func(t *conformance.T) {
		t.In("outer", func() {
			t.In("inner", func() { t.Errorf("first") })
			t.Errorf("second")
		})
		t.Errorf("third")
	}}}, conformance.InProcess{}, conformance.Options{})
	require.NoError(t, err)
	require.Len(t, results, 1)
	assert.Equal(t, "outer: inner: first\nouter: second\nthird", results[0].Detail)
}
