package cases

import (
	"bytes"
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// pv7 is what chapter 7 of the verbs draft binds without the keyword.
var pv7 = []conformance.Case{
	apiCase("7.2/index-and-key", onHost(indexAndKey), "PV-7.2-M1"),
	apiCase("7.5.1/reads-by-remote-rights", onQuietHost(readsByRemoteRights), "PV-7.5.1-M1"),
	apiCase("7.8/shared-behind-the-data", onHost(sharedBehindData), "PV-7.8-M1"),
	apiCase("7.10.2/overlapping-windows", onQuietHost(overlappingWindows), "PV-7.10.2-M3"),
	apiCase("7.10.6.2/rights-of-the-qp-for-no-octets", onHost(windowQPRightsOfNothing), "PV-7.10.6.2-M2"),
}

// indexAndKey registers one STag with key after key, and looks at the four octets that the
// peer sees of it: the first three stay, the last is the key.
func indexAndKey(t *conformance.T, n *host) {
	l, p, mr := n.link(privileged), n.pages(1, 4096), n.allocated()
	index := mr.STag().Index()
	require.Less(t, index, uint32(1)<<24)
	first := []byte{byte(index >> 16), byte(index >> 8), byte(index)}
	for i, key := range []uint8{0, 1, 0x5A, 0xFF} {
		t.Part("key %#x", key)
		st := mr.WithKey(key)
		require.Equal(t, binary.BigEndian.Uint32(append(bytes.Clone(first), key)), uint32(st))
		r := fastRegister(st, p.List(0, 64), 4096, allRights)
		post(t, l.qp, r, verbs.Request{ID: 1, Op: verbs.OpRead, Local: verbs.FastRegisterBuffer(r.FastRegister).SGE(0, 8), Remote: theirs})
		u := bytes.Clone(l.next())
		require.Equal(t, aReadRequest(uint32(i+1), read{})[:18], u[:18])
		require.Equal(t, append(bytes.Clone(first), key), u[18:22], "the sink's STag, in the RDMA Read Request")
		l.send(aReadResponse(binary.BigEndian.Uint32(u[18:]), 4096, []byte("response")))
		completes(t, l.sq, l.sentAs(0x7A07, verbs.OpFastRegister, verbs.StatusSuccess), l.sentAs(1, verbs.OpRead, verbs.StatusSuccess))
		run(t, l.qp, verbs.Request{ID: 2, Op: verbs.OpInvalidate, Invalidate: st}, verbs.StatusSuccess)
	}
	t.Part("")
}

// readsByRemoteRights reads, both ways, where the local rights say one thing and the remote
// ones another: the remote ones count, a window's where there is one.
func readsByRemoteRights(n *host) {
	t, data := n.t, []byte("response")
	const local = verbs.LocalRead | verbs.LocalWrite
	refused := noRight.answered
	for _, c := range []struct {
		region, window verbs.Access // no window: 0
		sink, source   bool
	}{
		{local, 0, false, false},
		{verbs.LocalWrite, 0, false, false},
		{verbs.LocalWrite | verbs.RemoteWrite, 0, true, false},
		{verbs.LocalRead | verbs.RemoteRead, 0, false, true},
		{local, verbs.RemoteWrite, true, false},
		{verbs.LocalWrite, verbs.RemoteWrite, true, false},
		{verbs.LocalRead, verbs.RemoteRead, false, true},
		{allRights, verbs.RemoteRead, false, true},
		{allRights, verbs.RemoteWrite, true, false},
	} {
		for _, sink := range []bool{true, false} {
			t.Logf("region %v, window %v, as sink: %v", c.region, c.window, sink)
			s, mr := n.probe(verbs.QPConfig{}), n.register(64, c.region|verbs.BindWindow)
			b, mw := mr.Buffer(), n.newMW()
			if c.window != 0 {
				bind := s.binds(mw.BindRequest(mr, 0, 64, c.window, 1))
				b = verbs.BindBuffer(bind)
			}
			was := bytes.Clone(mr.Bytes())
			switch {
			case sink && c.sink:
				s.sink(b.SGE(0, 8), data, verbs.StatusSuccess, allowed)
				copy(was, data)
			case sink:
				s.sink(b.SGE(0, 8), data, verbs.StatusAccess, refused)
			case c.source:
				require.Equal(t, was[:8], s.read(b.Remote(0), 8, allowed))
			default:
				s.read(b.Remote(0), 8, noRight.read)
			}
			require.Equal(t, was, mr.Bytes(), "the region")
			require.NoError(t, mw.Deallocate())
			s.disconnect()
		}
	}
}

// sharedBehindData names a Shared region as what is to be invalidated by a message that
// carries data: that is there, then comes the error, and the stream ends.
func sharedBehindData(t *conformance.T, n *host) {
	share := func() *verbs.MR {
		mr := n.register(64, allRights)
		require.NoError(t, second(mr.RegisterShared(nil, verbs.SharedConfig{Access: allRights})))
		return mr
	}
	t.Part("RDMA Read with Invalidate")
	l, mr := n.link(verbs.QPConfig{}), share()
	at := mr.Remote(0)
	post(t, l.qp, verbs.Request{ID: 1, Op: verbs.OpReadInvalidate, Local: mr.SGE(0, 8), Remote: theirs})
	l.expect(aReadRequest(1, read{uint32(at.STag), at.TO, 8, uint32(theirs.STag), theirs.TO}))
	l.send(aReadResponse(uint32(at.STag), at.TO, []byte("response")))
	completes(t, l.sq, l.sentAs(1, verbs.OpReadInvalidate, verbs.StatusInvalidSTag))
	require.Equal(t, "response", string(mr.Bytes()[:8]))
	l.terminated(0x0000, nil, false)
	require.True(t, queried(t, mr).Valid)

	t.Part("Invalidate Local STag")
	l = n.link(verbs.QPConfig{})
	run(t, l.qp, verbs.Request{ID: 2, Op: verbs.OpInvalidate, Invalidate: mr.STag()}, verbs.StatusInvalidSTag)
	l.terminated(0x0000, nil, false)
	require.True(t, queried(t, mr).Valid)

	for control := range inTurn(t, "control %#x", []byte{opSendInv, opSendSEInv}) {
		l, mr := n.link(verbs.QPConfig{}), share()
		clear(l.mr.Bytes()[64:128])
		l.recv(1)
		u := untagged(lastUntagged, control, uint32(mr.STag()), 0, 1, 0, []byte("payload"))
		l.send(u)
		completes(t, l.rq, l.recvAs(verbs.StatusInvalidSTag, 1)...)
		require.Equal(t, "payload", string(l.mr.Bytes()[64:71]))
		l.terminated(0x0109, u, false)
		require.True(t, queried(t, mr).Valid)
	}
}

// overlappingWindows binds windows to one region that lie in each other, touch, and are
// apart, with different rights, on two queue pairs: each gives what it was bound with.
func overlappingWindows(n *host) {
	t, mem := n.t, n.mr.Bytes()
	places := []struct {
		off, k int
		access verbs.Access
	}{
		{0, 100, verbs.RemoteRead}, {50, 100, verbs.RemoteWrite}, {0, 100, remoteRights}, {60, 10, verbs.RemoteRead},
		{150, 50, verbs.RemoteWrite}, {400, 50, remoteRights},
	}
	for last := range places { // whose refusal ends the stream
		seats := []*probe{n.probe(verbs.QPConfig{}), n.probe(verbs.QPConfig{})}
		var windows []*verbs.MW
		var buffers []verbs.TaggedBuffer
		for i, p := range places {
			mw := n.newMW()
			b := seats[i%2].binds(mw.BindRequest(n.mr, p.off, p.k, p.access, uint8(i)))
			windows, buffers = append(windows, mw), append(buffers, verbs.BindBuffer(b))
		}
		require.Equal(t, len(places), queried(t, n.mr).Windows)
		for i, p := range places {
			t.Logf("octets %d to %d, %v", p.off, p.off+p.k-1, p.access)
			was := bytes.Clone(fill(mem[:512], i))
			if p.access&verbs.RemoteRead != 0 {
				require.Equal(t, mem[p.off:p.off+p.k], seats[i%2].read(buffers[i].Remote(0), p.k, allowed))
			}
			if p.access&verbs.RemoteWrite != 0 {
				sent := bytes.Repeat([]byte{0xEE}, p.k)
				seats[i%2].write(buffers[i].Remote(0), sent, allowed)
				copy(was[p.off:], sent)
			}
			require.Equal(t, was, mem[:512], "the region")
		}
		s, b := seats[last%2], buffers[last]
		if places[last].access == verbs.RemoteRead {
			s.write(b.Remote(0), []byte{1}, noRight.write)
		}
		if places[last].access == verbs.RemoteWrite {
			s.read(b.Remote(0), 1, noRight.read)
		}
		for _, mw := range windows {
			require.NoError(t, mw.Deallocate())
		}
		for _, s := range seats {
			s.disconnect()
		}
	}
}

// windowQPRightsOfNothing has a peer read no octets through a window, of a queue pair that
// answers no Reads: the window is not looked at, the queue pair's right is.
func windowQPRightsOfNothing(t *conformance.T, n *host) {
	for refused := range inTurn(t, "refused: %v", []bool{false, true}) {
		l, mw := n.link(verbs.QPConfig{NoInboundRead: refused}), n.newMW()
		b := mw.BindRequest(n.mr, 0, 64, remoteRights, 1)
		run(t, l.qp, binds(b), verbs.StatusSuccess)
		u := aReadRequest(1, read{nowhere, nowhereTO, 0, uint32(b.Window), b.VA})
		l.send(u)
		if !refused {
			l.expect(aReadResponse(nowhere, nowhereTO, nil))
			continue
		}
		l.terminated(0x1201, u, false)
		l.closesWith(verbs.StateError, verbs.EventReadNotEnabled)
	}
}
