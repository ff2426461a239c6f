//go:build race

package verbs_test

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// What the race detector says about memory that a program and its RNIC share
// (docs/memory-model.md). A report fails the test that it comes in.

// aside touches memory from a goroutine of its own. The test goes on behind it, and the
// race detector does not know: for it this touch is ordered with nothing that follows.
func aside(touch func()) {
	var done bool
	go func() {
		touch()
		set(&done)
	}()
	for !isSet(&done) {
		runtime.Gosched()
	}
}

//go:norace
func set(p *bool) { *p = true }

//go:norace
func isSet(p *bool) bool { return *p }

// TestDetectorLeavesPeersAlone: what a peer reads and writes by itself, in memory that is
// open to it, is ordered with nothing and allowed.
func TestDetectorLeavesPeersAlone(t *testing.T) {
	for name, stream := range map[string]verbs.StreamConfig{
		"plain": {}, "CRC": {CRC: true}, "markers": {CRC: true, MarkersIn: true, MarkersOut: true},
	} {
		for _, n := range []int{64, 256 << 10} {
			t.Run(name, func(t *testing.T) {
				a, b := newNode(t, verbs.QPConfig{}), newNode(t, verbs.QPConfig{})
				joinAs(t, a.qp, b.qp, stream)
				does := func(w ...verbs.Request) {
					_, err := a.qp.PostSend(w...)
					require.NoError(t, err)
					a.wait(t, len(w))
				}
				area := func(i int) []byte { return b.mr.Bytes()[i*n : (i+1)*n] }
				reads := func(i int) { // by the peer
					does(verbs.Request{Op: verbs.OpRead, Local: a.mr.SGE(0, n), Remote: b.mr.Remote(i * n)})
				}
				writes := func(i int) {
					does(verbs.Request{Op: verbs.OpWrite, SGL: a.mr.SGL(0, n), Remote: b.mr.Remote(i * n)},
						verbs.Request{Op: verbs.OpRead}) // all is placed when it is answered
				}
				aside(func() { clear(area(0)) })
				reads(0)
				reads(1)
				aside(func() { clear(area(1)) })
				aside(func() { _ = bytes.Clone(area(2)) })
				writes(2)
				writes(3)
				aside(func() { _ = bytes.Clone(area(3)) })
			})
		}
	}
}

func joinAs(t testing.TB, a, b *verbs.QP, stream verbs.StreamConfig) {
	x, y := tcpConns(t)
	there, here := stream, stream
	there.Conn, there.Role = y, mpa.Responder
	here.Conn, here.Role = x, mpa.Initiator
	require.NoError(t, b.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: &there}))
	require.NoError(t, a.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: &here}))
}

// misuses are what a program must not do to the buffers of its own requests. Nothing
// orders the touch with the request.
var misuses = map[string]func(t *testing.T, a, b *node){
	"writes to the source of a Send": func(t *testing.T, a, b *node) {
		aside(func() { a.mr.Bytes()[8]++ })
		_, err := b.qp.PostRecv(verbs.Recv{SGL: b.mr.SGL(0, 64)})
		require.NoError(t, err)
		_, err = a.qp.PostSend(verbs.Request{SGL: a.mr.SGL(0, 64)})
		require.NoError(t, err)
		a.wait(t, 1)
		b.wait(t, 1)
	},
	"writes to the source of a Write": func(t *testing.T, a, b *node) {
		aside(func() { a.mr.Bytes()[8]++ })
		_, err := a.qp.PostSend(verbs.Request{Op: verbs.OpWrite, SGL: a.mr.SGL(0, 64), Remote: b.mr.Remote(0)})
		require.NoError(t, err)
		a.wait(t, 1)
	},
	"reads a receive buffer": func(t *testing.T, a, b *node) {
		seen := byte(0)
		aside(func() { seen += b.mr.Bytes()[8] })
		_, err := b.qp.PostRecv(verbs.Recv{SGL: b.mr.SGL(0, 64)})
		require.NoError(t, err)
		_, err = a.qp.PostSend(verbs.Request{SGL: a.mr.SGL(0, 64)})
		require.NoError(t, err)
		b.wait(t, 1)
	},
	"reads the sink of a Read": func(t *testing.T, a, b *node) {
		seen := byte(0)
		aside(func() { seen += a.mr.Bytes()[8] })
		_, err := a.qp.PostSend(verbs.Request{Op: verbs.OpRead, Local: a.mr.SGE(0, 64), Remote: b.mr.Remote(0)})
		require.NoError(t, err)
		a.wait(t, 1)
	},
}

const misuseEnv = "SOFTRNIC_MISUSE"

// TestMisuse is the program that TestDetectorSeesMisuse runs. By itself it does nothing.
func TestMisuse(t *testing.T) {
	if do, ok := misuses[os.Getenv(misuseEnv)]; ok {
		a, b := newNode(t, verbs.QPConfig{}), newNode(t, verbs.QPConfig{})
		join(t, a.qp, b.qp, true)
		do(t, a, b)
	}
}

// TestDetectorSeesMisuse: what a program does to the buffers of its own requests while
// they are the RNIC's is reported, in a process of its own.
func TestDetectorSeesMisuse(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for name := range misuses {
		t.Run(name, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), self, "-test.run=^TestMisuse$")
			c.Env = append(os.Environ(), misuseEnv+"="+name)
			out, err := c.CombinedOutput()
			require.Error(t, err, "%s", out)
			assert.Contains(t, string(out), "WARNING: DATA RACE")
			assert.Contains(t, string(out), "/stag.", "the copy is one of the two")
		})
	}
}
