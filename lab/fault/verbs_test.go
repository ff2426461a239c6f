package fault

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// struck is what an Injector makes of so many calls of a verb.
func struck(t *testing.T, plan string, n int) (out []string) {
	in, err := ForC(MustParse(plan), nil)
	require.NoError(t, err)
	for range n {
		errno, late := in.Verb("create_qp")
		out = append(out, fmt.Sprint(errno, " ", late))
	}
	return out
}

// TestVerb: a verb is counted by its name alone, and the same plan and seed give the same.
func TestVerb(t *testing.T) {
	var strikes []string
	in, err := ForC(MustParse("verb reg_mr 2: errno ENOMEM late 5ms\nverb alloc_pd: delay 7ms"), func(s Strike) { strikes = append(strikes, s.String()) })
	require.NoError(t, err)
	for i, want := range []int{0, 12, 0} {
		errno, late := in.Verb("reg_mr")
		assert.Equal(t, want, errno, i)
		assert.Equal(t, want != 0, late == 5*time.Millisecond, i)
		errno, late = in.Verb("alloc_pd")
		assert.Zero(t, errno)
		assert.Equal(t, 7*time.Millisecond, late)
	}
	assert.Contains(t, strikes, "line 1: verb reg_mr 2: errno ENOMEM late 5ms")
	const random = "seed 3\nverb create_qp chance 0.3: errno EAGAIN"
	first := struck(t, random, 50)
	assert.Equal(t, first, struck(t, random, 50))
	assert.Contains(t, first, "11 0s")
	assert.NotEqual(t, first, struck(t, "seed 4\nverb create_qp chance 0.3: errno EAGAIN", 50))
}

// TestCompleted: completions are counted for each queue pair and operation; what a Go program has at its CQ is left alone.
func TestCompleted(t *testing.T) {
	in, err := ForC(MustParse("completion 2 of write: status RETRY_EXC_ERR"), nil)
	require.NoError(t, err)
	for _, qp := range []wr.QPID{7, 8} {
		for i, want := range []bool{false, true, false} {
			_, ok := in.Completed(qp, wr.OpSend)
			assert.False(t, ok)
			status, ok := in.Completed(qp, wr.OpWrite)
			assert.Equal(t, want, ok, i)
			assert.Equal(t, want, status == 12, i)
		}
	}
	_, completions := inside{in}.Watches()
	assert.False(t, completions)
}

func TestOpens(t *testing.T) {
	in, err := ForC(MustParse("open 2: no device"), nil)
	require.NoError(t, err)
	require.NoError(t, inside{in}.Open()) // of the device's RNIC, which the program does not see
	assert.Equal(t, []bool{true, false, true}, []bool{in.Opens(), in.Opens(), in.Opens()})
}

// TestOfC: what only a C program's device can carry out is refused elsewhere, with what to say instead.
func TestOfC(t *testing.T) {
	for _, text := range []string{"verb reg_mr: errno EIO", "open device a: no device", "completion 1: status FATAL_ERR", "post 1 device a: fail"} {
		_, err := New(MustParse(text), nil)
		require.ErrorContains(t, err, "fault plan: line 1: "+text+": that is of C programs alone", text)
		require.ErrorContains(t, err, "a Go program says open, registration, post or completion")
		require.ErrorContains(t, MustParse(text).NeedsRNIC(), "that is of a C program's device (rnic run)", text)
	}
}

func TestFor(t *testing.T) {
	p := MustParse("seed 9\nverb reg_mr device a: errno EIO\nverb reg_mr device b: errno EIO\npost 1: fail")
	assert.Equal(t, []string{"a", "b"}, p.Devices())
	assert.Equal(t, "seed 9\nverb reg_mr device b: errno EIO\npost 1: fail\n", p.For("b").String())
}

// TestSetPlan: another plan counts from the beginning, and none has nothing strike.
func TestSetPlan(t *testing.T) {
	in, err := New(MustParse("registration: fail\npost: fail"), nil)
	require.NoError(t, err)
	require.Error(t, inside{in}.Register())
	require.NoError(t, in.SetPlan(&Plan{}))
	require.NoError(t, inside{in}.Register())
	posts, _ := inside{in}.Watches()
	assert.False(t, posts)
	require.NoError(t, in.SetPlan(MustParse("registration 1: fail")))
	require.Error(t, inside{in}.Register())
	require.NoError(t, inside{in}.Register())
	require.ErrorContains(t, in.SetPlan(MustParse("open device a: no device")), "of C programs alone")
}

// TestErrnos: each name has a number of its own.
func TestErrnos(t *testing.T) {
	seen := map[int]string{}
	for name, no := range errnos {
		assert.Empty(t, seen[no], name)
		seen[no] = name
	}
	assert.Len(t, statuses, 22)
	assert.Equal(t, "GENERAL_ERR", statuses[21])
}
