package cases

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// r5040_8_shared is what streams share, and one peer may not use up: RFC 5040 8.1.
var r5040_8_shared = []conformance.Case{
	upperCase("8.1.1/cq-overflow", overflowContained, "R5040-8.1.1-M11", "R5040-8.1.1-M12"),
	upperCase("8.1.2/read-requests-not-shared", readsNotShared, "R5040-8.1.2-M6"),
	upperCase("8.1.2/greedy-peer", greedyPeer, "R5040-8.1.2-M7"),
}

// overflowContained: the queue pairs of a CQ that overflows end, what fitted can be
// polled, and others go on.
func overflowContained(t *conformance.T) {
	u := tester(t)
	other := openIn(t, u, setup{})
	others := other.recv(4, 16)
	r := openIn(t, u, setup{qp: upper.OpenArgs{CQEntries: 2}})
	b := r.recv(4, 16)
	for i := range 4 {
		other.sendMessage([]byte{byte(i)})
		others[i].gets(0, []byte{byte(i)})
		r.sendMessage([]byte{byte(100 + i)})
	}
	r.tornDown(0x0207, nil, false)
	r.events(verbs.EventCQRQError)
	r.completions(
		verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: 1},
		verbs.Completion{ID: 2, Op: verbs.OpRecv, Bytes: 1},
	)
	b[0].holds(0, []byte{100})
	b[1].holds(0, []byte{101})
	var e upper.Events
	require.NoError(t, u.Events(upper.EventsArgs{N: 2, Timeout: r.patience()}, &e))
	overflows := 0
	for _, x := range e.Events {
		if x.ID == verbs.EventCQOverflow {
			overflows++
			require.NotZero(t, x.CQ)
		}
	}
	require.Equal(t, 1, overflows, "CQ Overflow Detected in %v", e.Events)

	other.completions(
		verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: 1}, verbs.Completion{ID: 2, Op: verbs.OpRecv, Bytes: 1},
		verbs.Completion{ID: 3, Op: verbs.OpRecv, Bytes: 1}, verbs.Completion{ID: 4, Op: verbs.OpRecv, Bytes: 1},
	)
	for _, x := range others {
		x.unchanged()
	}
	other.settled()
	other.unharmed()
}

// readsNotShared: one peer uses up its queue pair's IRD and does not read its
// responses; another queue pair's IRD is there all the same.
func readsNotShared(t *conformance.T) {
	u := tester(t)
	greedy := openIn(t, u, setup{qp: upper.OpenArgs{IRD: 2}, narrow: true})
	big := greedy.region(8<<20, verbs.LocalRead|verbs.RemoteRead)
	for i := range 2 {
		greedy.send(aReadRequest(greedy.nextRead(), read{nowhere + uint32(i), 0, 8 << 20, big.tag(), big.at(0)}))
	}
	r := openIn(t, u, setup{qp: upper.OpenArgs{IRD: 4}})
	b := r.region(4096, allRights)
	for range 3 {
		var requests, responses [][]byte
		for i := range 4 {
			requests = append(requests, aReadRequest(r.nextRead(), read{nowhere + uint32(i), 0, 1000, b.tag(), b.at(i)}))
			responses = append(responses, aReadResponse(nowhere+uint32(i), 0, b.first[i:i+1000]))
		}
		r.sendAtOnce(requests...)
		r.expect(responses...)
	}
	greedy.unharmed()
	_ = greedy.peer.Reset()
}

// greedyPeer: two queue pairs share an S-RQ, and one peer takes more than its share.
// The program is told that receives run short, can have itself told of each queue
// pair that takes one, and sees whose every completion is. The other peer's Sends
// arrive.
func greedyPeer(t *conformance.T) {
	const depth, share = 8, 3
	u := tester(t)
	shared := upper.OpenArgs{SRQ: 1, SRQDepth: depth, SRQLimit: 4}
	greedy := openIn(t, u, setup{qp: shared, raw: true})
	require.NoError(t, greedy.modify(upper.ModifyArgs{Next: verbs.StateIdle, RQLimit: ptr(0), ArmRQLimit: true}))
	greedy.start(setup{})
	modest := openIn(t, u, setup{qp: shared})
	b := greedy.region(depth*8, verbs.LocalWrite)
	for i := range depth {
		var p upper.Posted
		require.NoError(t, u.PostRecv(upper.PostRecvArgs{SRQ: 1, Recvs: []verbs.Recv{{ID: uint64(i), SGL: b.sgl(8*i, 8)}}}, &p))
	}
	var want []verbs.Completion
	for i := range share + 2 {
		greedy.sendMessage([]byte(fmt.Sprint("greedy", i)))
		b.gets(8*i, []byte(fmt.Sprint("greedy", i)))
		want = append(want, verbs.Completion{ID: uint64(i), Op: verbs.OpRecv, Bytes: 7})
	}
	greedy.settled()
	modest.sendMessage([]byte("modest"))
	b.gets(8*(share+2), []byte("modest"))
	modest.completions(verbs.Completion{ID: share + 2, Op: verbs.OpRecv, Bytes: 6})
	greedy.events(verbs.EventRQLimit)
	modest.events()
	var e upper.Events
	require.NoError(t, u.Events(upper.EventsArgs{N: 2, Timeout: greedy.patience()}, &e))
	limits := 0
	for _, x := range e.Events {
		if x.ID == verbs.EventSRQLimit {
			limits++
		}
	}
	require.Equal(t, 1, limits, "S-RQ Limit Reached in %v", e.Events)
	greedy.completions(want...)
	b.unchanged()
}
