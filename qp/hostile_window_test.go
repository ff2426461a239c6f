package qp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

const bothRemote = wr.RemoteRead | wr.RemoteWrite

// ownWindow is a VA-based window of the queue pair with both rights.
func ownWindow(r *rig) wr.STag { return r.bindWindow(ownQP, bothRemote, wr.VABased) }

func otherWindow(r *rig) wr.STag { return r.bindWindow(otherQP, bothRemote, wr.VABased) }

// unbound is a window in the Invalid state.
func unbound(r *rig) wr.STag {
	s, err := r.tab.AllocateWindow(ownPD)
	require.NoError(r.t, err)
	return s
}

// through names an octet of a window.
func through(window func(*rig) wr.STag, off int) func(*rig) (wr.STag, uint64) {
	return func(r *rig) (wr.STag, uint64) { return window(r), r.windowed.at(off) }
}

// windowAttacks are the checks of verbs draft 7.10.6.2 and 7.10.6.3. The window
// has octets 100 to 199 of its region.
var windowAttacks = []attack{
	badWrite("through a window, one octet below", 1, through(ownWindow, 99), faultTagBounds, 0x1101, wr.EventProtBounds),
	badWrite("through a window, one octet beyond", 2, through(ownWindow, 199), faultTagBounds, 0x1101, wr.EventProtBounds),
	badWrite("through a window of another QP", 1, through(otherWindow, 100), faultTagPD, 0x1102, wr.EventProtPD),
	badWrite("through an Invalid window", 1, through(unbound, 100), faultTagSTag, 0x1100, wr.EventProtSTag),
	badWrite("through a window with a wrong key", 1, through(func(r *rig) wr.STag { return ownWindow(r) ^ 1 }, 100), faultTagSTag, 0x1100, wr.EventProtSTag),
	badWrite("through a window for reading", 1, through(func(r *rig) wr.STag {
		return r.bindWindow(ownQP, wr.RemoteRead, wr.VABased)
	}, 100), faultTagAccess, 0x1100, wr.EventProtAccess),
	badWrite("through a zero-based window, beyond", 1, func(r *rig) (wr.STag, uint64) {
		return r.bindWindow(ownQP, bothRemote, wr.ZeroBased), 100
	}, faultTagBounds, 0x1101, wr.EventProtBounds),
	badWrite("to the region under a window", 1, func(r *rig) (wr.STag, uint64) {
		ownWindow(r)
		return r.windowed.stag, r.windowed.at(100)
	}, faultTagAccess, 0x1100, wr.EventProtAccess),
	badRead("through a window, one octet beyond", 2, through(ownWindow, 199), faultReadBounds, 0x0101, wr.EventIRRQBounds),
	badRead("through a window of another QP", 1, through(otherWindow, 100), faultReadPD, 0x0103, wr.EventIRRQPD),
	badRead("through an Invalid window", 1, through(unbound, 100), faultReadSTag, 0x0100, wr.EventIRRQSTag),
	badRead("through a window for writing", 1, through(func(r *rig) wr.STag {
		return r.bindWindow(ownQP, wr.RemoteWrite, wr.VABased)
	}, 100), faultReadAccess, 0x0102, wr.EventIRRQAccess),
	refusedInvalidation("a window of another QP", otherWindow, faultSendInvPD),
	refusedInvalidation("a window with a wrong key", func(r *rig) wr.STag { return ownWindow(r) ^ 1 }, faultSendInvSTag),
	refusedInvalidation("a region under a window", func(r *rig) wr.STag {
		// That there is a window is looked at behind the rights.
		s := r.newSlab(stag.RegionConfig{PD: ownPD, Access: wr.LocalRead | wr.RemoteRead | wr.BindWindow, Key: 10, RemoteInvalidate: true})
		w := wr.BindRequest{Window: unbound(r), Region: s.stag, VA: s.base, Length: 1, Access: wr.RemoteRead}
		require.Equal(r.t, stag.OK, r.tab.Bind(&w, stag.User{PD: ownPD, QP: otherQP, Windows: new(stag.Windows)}))
		return s.stag
	}, faultSendInvWindows),
	refusedInvalidation("a shared region", func(r *rig) wr.STag {
		s := r.newSlab(stag.RegionConfig{PD: ownPD, Access: wr.LocalRead | wr.RemoteRead, Key: 10, RemoteInvalidate: true})
		_, err := r.tab.RegisterShared(s.stag, stag.SharedConfig{PD: ownPD, Access: wr.LocalRead, Addressing: wr.ZeroBased})
		require.NoError(r.t, err)
		return s.stag
	}, faultSendInvSTag),
}

// TestThroughWindows is what a peer may do through windows (verbs draft 7.10): the
// rights are those of the window, not those of the region.
func TestThroughWindows(t *testing.T) {
	r := newRig(t, setup{})
	va, zero := ownWindow(r), r.bindWindow(ownQP, bothRemote, wr.ZeroBased)
	sink := r.bindWindow(ownQP, wr.RemoteWrite, wr.VABased)
	r.postRecv(wr.Recv{ID: 1}, wr.Recv{ID: 2})
	r.postSend(wr.Request{ID: 3, Op: wr.OpRead, Local: wr.SGE{STag: sink, TO: r.windowed.at(180), Length: 20}, Remote: wr.Remote{STag: 5}})
	r.next()
	r.send(
		rawpeer.Write(uint32(va), r.windowed.at(100), filled(100)).Octets(),
		rawpeer.Write(uint32(zero), 10, filled(5)).Octets(),
		rawpeer.Write(uint32(otherWindow(r)), top, nil).Octets(), // of length zero: not looked at
		rawpeer.ReadResponse(uint32(sink), r.windowed.at(180), filled(20)).Octets(),
		readRequest(1, 100, zero, 0).Octets(),
		readRequest(2, 0, otherWindow(r), top).Octets(),
	)
	r.windowed.expect(100, filled(100))
	r.windowed.expect(110, filled(5))
	r.windowed.expect(180, filled(20))
	require.Equal(t, rawpeer.ReadResponse(0x5151, 0x6262, r.windowed.want[guard+100:guard+200]).Octets(), r.next())
	require.Equal(t, rawpeer.ReadResponse(0x5151, 0x6262, nil).Octets(), r.next())
	require.Equal(t, []comp{{3, 0, 0}}, r.wait(r.scq, 1))
	r.requireMemory()

	// The peer gives a window back; the others of the region stay.
	r.send(sendInvalidate(1, uint32(va), nil).Octets(), rawpeer.Write(uint32(zero), 0, filled(3)).Octets(), rawpeer.Send(2, nil).Octets())
	require.Equal(t, []comp{{1, 0, 0}, {2, 0, 0}}, r.wait(r.rcq, 2))
	r.windowed.expect(100, filled(3))
	r.requireMemory()
	bad := rawpeer.Write(uint32(va), r.windowed.at(100), filled(1)).Octets()
	r.send(bad)
	require.Equal(t, terminate(0x1100, echoDDP, bad), r.next())
	require.NoError(t, r.peer.Close())
	r.over()
	r.requireMemory()
}

// TestWindowRevoked takes a window away in the middle of a message through it: what
// comes after is not placed (RV-7.10.4.1-M1 to M4).
func TestWindowRevoked(t *testing.T) {
	for name, revoke := range map[string]func(*rig, wr.STag){
		"invalidated": func(r *rig, s wr.STag) {
			require.Equal(r.t, stag.OK, r.tab.InvalidateLocal(s, stag.User{PD: ownPD, QP: ownQP}))
		},
		"deallocated": func(r *rig, s wr.STag) { require.NoError(r.t, r.tab.Deallocate(s)) },
		"bound anew": func(r *rig, s wr.STag) { // with the same key, elsewhere
			require.Equal(r.t, stag.OK, r.tab.InvalidateLocal(s, stag.User{PD: ownPD, QP: ownQP}))
			b := wr.BindRequest{Window: s, Region: r.windowed.stag, VA: r.windowed.at(300), Length: 10, Access: bothRemote}
			require.Equal(r.t, stag.OK, r.tab.Bind(&b, stag.User{PD: ownPD, QP: ownQP, Windows: new(stag.Windows)}))
		},
	} {
		t.Run("Write/"+name, func(t *testing.T) {
			r := newRig(t, setup{})
			s := ownWindow(r)
			first := rawpeer.Write(uint32(s), r.windowed.at(100), filled(50))
			first.More = true
			r.send(first.Octets())
			r.windowed.expect(100, filled(50))
			require.Eventually(t, func() bool { return r.s.rx.locked(func(rx *receiver) bool { return rx.tagOpen }) }, patience, 1e6)
			revoke(r, s)
			bad := rawpeer.Write(uint32(s), r.windowed.at(150), filled(50)).Octets()
			r.send(bad)
			fault, code := faultTagSTag, uint16(0x1100)
			if name == "bound anew" {
				fault, code = faultTagBounds, 0x1101
			}
			require.Equal(t, terminate(code, echoDDP, bad), r.next())
			require.NoError(t, r.peer.Close())
			r.over()
			assert.Equal(t, fault, r.s.cause.fault)
			r.requireMemory()
		})
		t.Run("answer to a Read/"+name, func(t *testing.T) {
			r := newRig(t, setup{})
			s := ownWindow(r)
			r.s.tx.mu.Lock()
			bad := readRequest(1, 100, s, r.windowed.at(100)).Octets()
			r.send(bad)
			require.Eventually(t, func() bool { return r.s.irrq.len() == 1 }, patience, 1e6)
			ok, _ := r.s.tx.nextResponse() // its memory is found, nothing is sent
			require.True(t, ok)
			revoke(r, s)
			r.s.tx.mu.Unlock()
			r.s.tx.tryTransmit()
			require.Equal(t, terminate(0x0100, echoRead, bad), r.next())
			require.NoError(t, r.peer.Close())
			r.over()
			r.requireEvents(wr.EventIRRQSTag)
		})
	}
}

// TestWindowIsNoBuffer: a receive cannot be filled through a window (verbs draft
// 8.1.3.2).
func TestWindowIsNoBuffer(t *testing.T) {
	r := newRig(t, setup{})
	r.postRecv(wr.Recv{ID: 1, SGL: []wr.SGE{{STag: ownWindow(r), TO: r.windowed.at(100), Length: 9}}})
	r.send(rawpeer.Send(1, filled(9)).Octets())
	require.Equal(t, terminate(0, echoNone, nil), r.next())
	require.NoError(t, r.peer.Close())
	r.over()
	require.Equal(t, []comp{{1, wr.StatusInvalidSTag, 0}}, r.all(r.rcq))
	r.requireMemory()
}
