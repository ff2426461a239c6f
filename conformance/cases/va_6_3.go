package cases

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// va6_3 is order, barriers and protection: VI Architecture 6.3.
var va6_3 = []conformance.Case{
	apiCase("6.3.1/vi-reads-dequeued-in-order", onVI(vipl.ServiceReliableDelivery, viReadsInOrder), "VA-6.3.1-M1", "PA-6.3.1.1-M2", "PA-6.3.1.1-M4", "PT-3.2-M6"),
	apiCase("6.3.1.1/vi-send-behind-read", viSendBehindRead, "VA-6.3.1.1-M1"),
	apiCase("6.3.1.1/vi-write-behind-read", viWriteBehindRead, "VA-6.3.1.1-M2"),
	apiCase("6.3.1.1/vi-behind-failed-read", viBehindFailedRead, "VA-6.3.1.1-M1", "VA-6.3.1.1-M3", "PA-6.3.1.1-M5", "PA-2.5.3-M2"),
	apiCase("6.3.1.2/vi-fence", viFence, "VA-6.3.1.2-M1", "PA-10.2-M4"),
	apiCase("6.3.2/vi-write-validated", eachLevel(viWriteValidated),
		"VA-6.3.2-M1", "VA-10.3-M1", "VA-10.3-M2", "PA-3.2.2.1-M1", "PA-3.2.2.2-M1"),
	apiCase("6.3.2/vi-read-validated", viReadValidated, "VA-6.3.2-M1", "VA-10.3-M1", "VA-10.3-M2", "PA-3.2.2.1-M1", "PA-3.2.2.2-M1"),
}

// viReadsInOrder posts Reads and Sends by turns: Sends may overtake, but are dequeued in
// order of posting.
func viReadsInOrder(t *conformance.T, r *viRig) {
	from := vipl.AddressSegment{Data: 1, Handle: 1}
	ds := []*vipl.Descriptor{r.reads(r.v, from, r.data(0, 1)), r.sends(r.v, r.data(9, 1)), r.reads(r.v, from, r.data(1, 1)), r.sends(r.v)}
	var numbers []uint32
	for _, kind := range []byte{viReadRequest, viSend, viReadRequest, viSend} {
		numbers = append(numbers, r.get(kind).number)
	}
	r.answer(r.rdmaRead(r.at(0, 1)))
	r.notDone(r.v.SendDone)
	r.put(viSegment{kind: viReadResponse, flags: viLast, number: numbers[0], payload: []byte("1")})
	r.sent(r.v, ds[0], viDone|viOpRead)
	r.sent(r.v, ds[1], viDone)
	r.notDone(r.v.SendDone)
	r.put(viSegment{kind: viReadResponse, flags: viLast, number: numbers[2], payload: []byte("2")})
	r.sent(r.v, ds[2], viDone|viOpRead)
	r.sent(r.v, ds[3], viDone)
	require.Equal(t, "12", string(r.mem[:2]))
}

// newBehindRig is a rig at Reliable Reception whose segments leave when the peer reads
// them, but for takenAhead, with an RDMA Read of n octets asked for.
func newBehindRig(t *conformance.T) (r *viRig, read uint32, n int) {
	n = 1 << 22
	r = newVIRig(t, viSetup{
		level: vipl.ServiceReliableReception, pipe: true, receives: 1,
		vi: func(a *vipl.ViAttributes) { a.MaxTransferSize = 1 << 22 },
		ce: func(c *viCE) { c.mtu = 1 << 22 },
	})
	mem := make([]byte, n)
	handle := r.register(mem, vipl.MemAttributes{Ptag: r.ptag, EnableRdmaRead: true})
	read = r.rdmaRead(viRDMA{uint64(vipl.AddressOf(mem)), uint32(handle), uint32(n)})
	return r, read, n
}

// takenAhead is what has left by the measure of a stream, though the peer has not read it.
const takenAhead = 512 << 10

// viSendBehindRead has a Send come while the answer to an RDMA Read is on its way.
func viSendBehindRead(t *conformance.T) {
	r, read, n := newBehindRig(t)
	number := r.number + 1
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		r.send("behind")
	}()
	for got := 0; got < n; {
		s := r.get(viReadResponse)
		require.Equal(t, read, s.number)
		got += len(s.payload)
		if got < n-takenAhead {
			require.False(t, r.receives[0].Done(), "the Send is complete when %d octets of %d have left", got, n)
			require.NotEqual(t, number, s.ack)
		}
	}
	r.received(r.v, r.receives[0], viDone|viOpReceive)
	for r.get(viNOP).ack != number {
	}
	<-sent
}

// viWriteBehindRead has RDMA Writes come instead, one of them with immediate data.
func viWriteBehindRead(t *conformance.T) {
	for _, immediate := range []byte{0, viImmediate} {
		t.Part("immediate %v", immediate != 0)
		r, read, n := newBehindRig(t)
		before := bytes.Clone(r.mem[:8])
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			r.put(r.message(viSegment{kind: viWrite, flags: viLast | immediate, immediate: 1, rdma: r.at(0, 6), payload: []byte("behind")}))
		}()
		for got := 0; got < n; {
			s := r.get(viReadResponse)
			require.Equal(t, read, s.number)
			got += len(s.payload)
			if got < n-takenAhead {
				require.Equal(t, before, r.mem[:8], "memory when %d octets of %d have left", got, n)
				require.False(t, r.receives[0].Done())
			}
		}
		<-sent
		for r.get(viNOP).ack != r.number {
		}
		require.Equal(t, "behind", string(r.mem[:6]))
		if immediate != 0 {
			r.received(r.v, r.receives[0], viDone|viOpRemoteWrite|viHasImmediate)
		}
	}
}

// viBehindFailedRead has an RDMA Write, or a Send, come behind an RDMA Read that fails.
func viBehindFailedRead(t *conformance.T) {
	for _, s := range []viSegment{
		{kind: viWrite, flags: viLast, payload: []byte("behind")},
		{kind: viWrite, flags: viLast | viImmediate, payload: []byte("behind")},
		{kind: viSend, flags: viLast, payload: []byte("behind")},
	} {
		t.Part("type %d flags %x", s.kind, s.flags)
		r := newVIRig(t, viSetup{level: vipl.ServiceReliableReception, receives: 1})
		before := bytes.Clone(r.mem)
		read := r.message(viSegment{kind: viReadRequest, flags: viLast, rdma: viRDMA{1, 1, 1}})
		s.rdma = r.at(0, 6)
		s = r.message(s)
		r.says(append(read.octets(false), s.octets(false)...))
		require.NotZero(t, r.get(viReadResponse).flags&viError, "the answer")
		require.Equal(t, []uint32{read.number, viProtectionCode}, acked(r.last()))
		r.received(r.v, r.receives[0], viDone|viFlushed|viOpReceive)
		require.True(t, bytes.Equal(before, r.mem), "the memory")
	}
}

// viFence posts a fenced Send behind an RDMA Read and a Send, and at Reliable Reception
// behind a Send: there nothing passes an RDMA Read anyway.
func viFence(t *conformance.T) {
	var ack uint32
	quiet := func(r *viRig) { // if the fenced one had begun, it would come between the answers
		for range 3 {
			r.put(r.message(viSegment{kind: viReadRequest, flags: viLast, ack: ack, rdma: r.at(9, 1)}))
			r.answer(r.number)
		}
	}
	fence := func(r *viRig) *vipl.Descriptor {
		d := r.desc()
		d.SetSend(r.data(0, 4))
		d.Fence()
		return r.post(r.v, d)
	}
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery})
	read := r.reads(r.v, vipl.AddressSegment{Data: 1, Handle: 1}, r.data(0, 4))
	free := r.sends(r.v, r.data(9, 1))
	fenced := fence(r)
	number := r.get(viReadRequest).number
	require.Equal(t, r.mem[9:10], r.get(viSend).payload)
	quiet(r)
	r.put(viSegment{kind: viReadResponse, flags: viLast, number: number, payload: []byte("data")})
	require.Equal(t, "data", string(r.get(viSend).payload), "what the Read brought")
	r.sent(r.v, read, viDone|viOpRead)
	r.sent(r.v, free, viDone)
	r.sent(r.v, fenced, viDone)

	t.Part("Reliable Reception")
	r = newVIRig(t, viSetup{level: vipl.ServiceReliableReception})
	free, fenced = r.sends(r.v), fence(r)
	ack = r.subject
	number = r.get(viSend).number
	quiet(r)
	r.nop(viSegment{ack: number})
	r.sent(r.v, free, viDone)
	s := r.next()
	for s.kind == viNOP { // the ACKs of the Reads
		s = r.next()
	}
	require.Equal(t, []any{byte(viSend), number + 1}, []any{s.kind, s.number})
	r.nop(viSegment{ack: s.number})
	r.sent(r.v, fenced, viDone)
}

// viRefused is where an RDMA access of 8 octets must not go. VI and memory are such that
// only what is named is missing.
var viRefused = []struct {
	name  string
	write bool // only for RDMA Writes, or
	read  bool // only for RDMA Reads
	vi    func(*vipl.ViAttributes)
	at    func(r *viRig) viRDMA
}{
	{name: "no handle", at: func(r *viRig) viRDMA { a := r.at(0, 8); a.handle = 0; return a }},
	{name: "a handle of nothing", at: func(r *viRig) viRDMA { a := r.at(0, 8); a.handle ^= 0x00F00000; return a }},
	{name: "the handle of Descriptors", at: func(r *viRig) viRDMA { return viRDMA{uint64(vipl.AddressOf(r.descs)), uint32(r.dh), 8} }},
	{name: "no address", at: func(r *viRig) viRDMA { a := r.at(0, 8); a.address = 0; return a }},
	{name: "an octet in front", at: func(r *viRig) viRDMA { return r.at(-1, 8) }},
	{name: "an octet behind", at: func(r *viRig) viRDMA { return r.at(viMemory-7, 8) }},
	{name: "around the end of all addresses", at: func(r *viRig) viRDMA { a := r.at(0, 8); a.address = ^uint64(3); return a }},
	{name: "another tag", at: func(r *viRig) viRDMA {
		return r.guarded(vipl.MemAttributes{Ptag: r.newPtag(), EnableRdmaWrite: true, EnableRdmaRead: true})
	}},
	{name: "no right of the region to write", write: true, at: func(r *viRig) viRDMA { return r.guarded(vipl.MemAttributes{Ptag: r.ptag, EnableRdmaRead: true}) }},
	{name: "no right of the region to read", read: true, at: func(r *viRig) viRDMA { return r.guarded(vipl.MemAttributes{Ptag: r.ptag, EnableRdmaWrite: true}) }},
	{name: "no right of the VI to write", write: true, vi: func(a *vipl.ViAttributes) { a.EnableRdmaWrite = false }, at: func(r *viRig) viRDMA { return r.at(0, 8) }},
	{name: "no right of the VI to read", read: true, vi: func(a *vipl.ViAttributes) { a.EnableRdmaRead = false }, at: func(r *viRig) viRDMA { return r.at(0, 8) }},
	{name: "deregistered", at: func(r *viRig) viRDMA {
		require.NoError(r.t, r.nic.DeregisterMem(vipl.AddressOf(r.mem), r.handle))
		return r.at(0, 8)
	}},
}

// guarded registers a part of mem once more.
func (r *viRig) guarded(a vipl.MemAttributes) viRDMA {
	part := r.mem[4096:4104]
	return viRDMA{uint64(vipl.AddressOf(part)), uint32(r.register(part, a)), 8}
}

// viWriteValidated writes where it may not: nothing changes.
func viWriteValidated(t *conformance.T, l viLevel) {
	for c := range inTurn(t, "%s", viRefused) {
		if c.read {
			continue
		}
		r := newVIRig(t, viSetup{level: l.level, vi: c.vi, receives: 1})
		at := c.at(r)
		before := bytes.Clone(r.mem)
		r.put(r.message(viSegment{kind: viWrite, rdma: at, payload: []byte("1234")}))
		second := viSegment{kind: viWrite, flags: viLast, number: r.number, offset: 4, rdma: at, payload: []byte("5678")}
		_, _ = r.conn.Write(second.octets(false)) // it may have closed
		if l.level == vipl.ServiceUnreliable {
			r.send("")
			status := uint32(viDone | viOpReceive)
			if c.name == "deregistered" {
				status |= viProtection // the receive's memory has gone too
			}
			r.received(r.v, r.receives[0], status)
		} else {
			r.reported(r.v, vipl.ErrorRdmaWProt, viOpRemoteWrite)
			r.received(r.v, r.receives[0], viDone|viFlushed|viOpReceive)
		}
		require.True(t, bytes.Equal(before, r.mem), "the memory")
	}
}

// viReadValidated reads where it may not: nothing is sent.
func viReadValidated(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels[1:]) {
		for c := range inTurn(t, "%s", viRefused) {
			if c.write {
				continue
			}
			r := newVIRig(t, viSetup{level: l.level, vi: c.vi})
			number := r.rdmaRead(c.at(r))
			s := r.get(viReadResponse)
			require.Equal(t, number, s.number)
			require.Empty(t, s.payload)
			require.Equal(t, byte(viLast|viError), s.flags)
			r.reported(r.v, vipl.ErrorRdmaRProt, viOpRead)
			r.over()
		}
	}
}
