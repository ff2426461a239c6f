package vipl

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHandlesAreHardToGuess: 24 bits of a memory handle are random, and registering again
// gives another one.
func TestHandlesAreHardToGuess(t *testing.T) {
	h := newHost(t, Config{})
	seen := make(map[MemHandle]bool)
	var ones, zeros MemHandle
	for range 128 {
		handle, err := h.nic.RegisterMem(h.mem, &MemAttributes{Ptag: h.ptag})
		require.NoError(t, err)
		require.NoError(t, h.nic.DeregisterMem(AddressOf(h.mem), handle))
		require.False(t, seen[handle])
		seen[handle] = true
		ones |= handle
		zeros |= ^handle
	}
	assert.GreaterOrEqual(t, bits.OnesCount32(uint32(ones&zeros)), 24, "bits that have been both")
}

// TestGuessing: an Unreliable VI whose remote end tries one memory handle after the other
// tells the error handler, and stays connected.
func TestGuessing(t *testing.T) {
	p := newPair(t, ServiceUnreliable, Config{})
	const wrong = 17
	for i := range MemHandle(wrong) {
		d := p.a.desc()
		d.SetRdmaWrite(AddressSegment{Data: AddressOf(p.b.mem), Handle: p.b.handle + 1 + i}, p.a.data(0, 1))
		p.a.postSend(p.va, d)
		wait(t, p.va.SendWait, d)
	}
	assert.Equal(t, ErrorDescriptor{
		NicHandle: p.b.nic, ViHandle: p.vb, OpCode: opRemote, ResourceCode: ResourceVi, ErrorCode: ErrorRdmaWProt,
	}, p.b.waitError())
	p.works(t)
	p.b.noError()
	assert.Equal(t, StateConnected, state(t, p.vb))
	info, err := p.b.nic.QuerySystemManagementInfo(SystemInfoUsage)
	require.NoError(t, err)
	assert.EqualValues(t, wrong, info.(*Usage).Misdirected)
	assert.EqualValues(t, wrong, info.(*Usage).Untold)
}
