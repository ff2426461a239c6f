package qp

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// badSink is a good answer to a Read whose sink may not be written to: from the start,
// or because of what spoils it while the answer is on its way. What is wrong is the
// program's, and its request tells (verbs draft 6.2.2.3, 7.5.2, figure 23).
func badSink(name string, sink func(*rig) wr.SGE, spoil func(*rig), f streamFault, code uint16, status wr.Status) attack {
	return attack{
		name: "Read Response, " + name, sink: sink,
		lead: func(r *rig) [][]byte {
			if spoil != nil {
				spoil(r)
			}
			return nil
		},
		bad: func(r *rig) []byte {
			return rawpeer.ReadResponse(uint32(r.aim.STag), r.aim.TO, filled(readSize)).Octets()
		},
		fault: f, code: code, echo: echoDDP, read: status,
	}
}

func slabSink(of func(*rig) *slab) func(*rig) wr.SGE {
	return func(r *rig) wr.SGE { return of(r).sge(readTO, readSize) }
}

// windowSink is 32 octets of a window, from 100 of its region on.
func windowSink(access wr.Access) func(*rig) wr.SGE {
	return func(r *rig) wr.SGE {
		return wr.SGE{STag: r.bindWindow(ownQP, access, wr.VABased), TO: r.windowed.at(100), Length: readSize}
	}
}

// rebound takes the window of the sink away and binds it again, to octets from off on.
func rebound(qp wr.QPID, off int) func(*rig) {
	return func(r *rig) {
		owner := stag.User{PD: ownPD, QP: ownQP}
		require.Equal(r.t, stag.OK, r.tab.InvalidateLocal(r.aim.STag, owner))
		b := wr.BindRequest{
			Window: r.aim.STag, Region: r.windowed.stag, VA: r.windowed.at(off), Length: 100, Access: bothRemote,
		}
		require.Equal(r.t, stag.OK, r.tab.Bind(&b, stag.User{PD: ownPD, QP: qp, Windows: new(stag.Windows)}))
	}
}

var sinkAttacks = []attack{
	badSink("the sink has remote read only", slabSink(func(r *rig) *slab { return r.readable }), nil,
		faultSinkAccess, 0x1100, wr.StatusAccess),
	badSink("the sink has local rights only", slabSink(func(r *rig) *slab { return r.private }), nil,
		faultSinkAccess, 0x1100, wr.StatusAccess),
	badSink("the sink is a window for reading", windowSink(wr.RemoteRead), nil,
		faultSinkAccess, 0x1100, wr.StatusAccess),
	badSink("the sink was deallocated meanwhile", slabSink(func(r *rig) *slab {
		return r.newSlab(stag.RegionConfig{PD: ownPD, Access: wr.LocalWrite | wr.RemoteWrite, Key: 10})
	}), func(r *rig) { require.NoError(r.t, r.tab.Deallocate(r.aim.STag)) },
		faultSinkSTag, 0x1100, wr.StatusInvalidSTag),
	badSink("the sink was invalidated meanwhile", windowSink(wr.RemoteWrite), func(r *rig) {
		require.Equal(r.t, stag.OK, r.tab.InvalidateLocal(r.aim.STag, stag.User{PD: ownPD, QP: ownQP}))
	}, faultSinkSTag, 0x1100, wr.StatusInvalidSTag),
	badSink("the sink's window lies elsewhere now", windowSink(wr.RemoteWrite), rebound(ownQP, 101),
		faultSinkBounds, 0x1101, wr.StatusBaseBounds),
	badSink("the sink's window is another QP's now", windowSink(wr.RemoteWrite), rebound(otherQP, 100),
		faultSinkPD, 0x1102, wr.StatusInvalidPD),
}
