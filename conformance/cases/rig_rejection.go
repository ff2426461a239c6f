package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// rejection is a segment that a queue pair has to refuse, and all that follows.
type rejection struct {
	what  string
	ulpdu func(*victim) []byte
	// code is the Terminate Message's layer<<12|type<<8|code. It echoes the DDP
	// header of the segment, unless bare, and with readToo the RDMA Read Request
	// header.
	code          uint16
	bare, readToo bool
	// event is raised; 0 stands for a Completion Error instead, which is status,
	// of the receive.
	event  verbs.EventID
	status verbs.Status
}

// victim is what a rejection is tried on: a queue pair in RTS with one receive of
// victimRoom octets, an outstanding RDMA Read into sink, and an open region.
type victim struct {
	*rig
	receive, sink, region *buffer
}

const victimRoom = 64

func newVictim(t *conformance.T, s setup) *victim {
	s.qp.SendCQ, s.qp.RecvCQ = 1, 2
	v := &victim{rig: open(t, s)}
	v.receive = v.recv(1, victimRoom)[0]
	v.sink = v.rig.region(victimRoom, allRights)
	rights := allRights | verbs.BindWindow
	if s.qp.Extensions {
		rights |= verbs.RemoteAtomic
	}
	v.region = v.rig.region(256, rights)
	if v.play == conformance.Responder {
		v.send(aWrite(0, 0, nil))
	}
	v.post(verbs.Request{ID: 50, Op: verbs.OpRead, Local: v.sink.sge(0, 8), Remote: verbs.Remote{STag: 0x55, TO: 0x66}})
	v.expect(aReadRequest(1, read{v.sink.tag(), v.sink.at(0), 8, 0x55, 0x66}))
	return v
}

// rejected tries each of these, on a victim of its own: there is the Terminate
// Message and then the end of the stream; the event or the Completion Error and
// nothing else; and nothing was placed.
func rejected(t *conformance.T, s setup, rejections ...rejection) {
	for i := range rejections {
		x := &rejections[i]
		t.In(x.what, func() {
			v := newVictim(t, s)
			u := x.ulpdu(v)
			v.send(u)
			v.rejectedAs(x, u)
		})
	}
}

// rejectedAs says that the victim's stream ends because of segment u, as x tells.
func (v *victim) rejectedAs(x *rejection, u []byte) {
	if x.bare {
		u = nil
	}
	v.tornDown(x.code, u, x.readToo)
	if x.event != 0 {
		v.events(x.event)
		x.status = verbs.StatusFlushed
	} else {
		v.events()
	}
	v.completionsOf(v.RecvCQ, verbs.Completion{ID: 1, Op: verbs.OpRecv, Status: x.status})
	v.completionsOf(v.SendCQ, verbs.Completion{ID: 50, Op: verbs.OpRead, Status: verbs.StatusFlushed})
	v.region.unchanged()
	v.sink.unchanged()
	v.receive.unchanged()
	n, err := v.tryPost(verbs.Request{})
	require.ErrorIs(v.t, err, verbs.ErrInvalidState, "PostSQ behind the error")
	require.Zero(v.t, n)
}

// window binds a new window with key 1 to the whole of a buffer, on the queue pair.
func (r *rig) window(b *buffer, access verbs.Access) verbs.STag {
	return r.windowOf(b, 0, len(b.first), access)
}

// windowOf is window for n octets from octet off on.
func (r *rig) windowOf(b *buffer, off, n int, access verbs.Access) verbs.STag {
	var w upper.Window
	require.NoError(r.t, r.up.AllocateWindow(0, &w), "Allocate Memory Window")
	stag := w.STag + 1
	r.post(verbs.Request{ID: 0xB1, Op: verbs.OpBind, Bind: &verbs.BindRequest{
		Window: stag, Region: b.STag, VA: b.at(off), Length: uint64(n), Access: access,
	}})
	r.completions(verbs.Completion{ID: 0xB1, Op: verbs.OpBind})
	return stag
}

// refuses sends a segment, for which the stream is torn down.
func (r *rig) refuses(code uint16, u []byte, readToo bool) {
	r.send(u)
	r.tornDown(code, u, readToo)
}

// allUnchanged says that none of these buffers has changed.
func allUnchanged(list []*buffer) {
	for _, b := range list {
		b.unchanged()
	}
}
