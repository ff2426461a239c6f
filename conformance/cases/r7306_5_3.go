package cases

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// r7306_5_3 is that nothing comes between what an Atomic reads and what it writes: RFC
// 7306 5.3.
var r7306_5_3 = []conformance.Case{
	apiCase("5.3/counter", atomicCounter, "R7306-5-M1", "R7306-5.3-M1", "R7306-5.4-M2"),
	apiCase("5.3/tokens", atomicTokens, "R7306-5-M1", "R7306-5.3-M1", "R7306-5.4-M2"),
	apiCase("5.2.1/one-behind-the-other", atomicsInOrder, "R7306-5.2.1-M11", "R7306-5.2.1-M12", "R7306-5.2.2-M7", "R7306-5.4-M6"),
	apiCase("5.2.1/through-a-window", atomicWindow, "R7306-5.2.1-M13", "R7306-5.4-M1", "R7306-8.1-M1"),
}

// office is a host with a number that its peers change, over queue pairs of their own and by
// different STags. The program there changes it too.
type office struct {
	*host
	number  *uint64
	at      []verbs.Remote // the number, for each peer
	clients []*host
}

func newOffice(t *conformance.T, clients int) *office {
	o := &office{host: newHost(t, hostConfig{}), number: new(uint64)}
	mr := o.region(o.pd, verbs.RegionConfig{Memory: unsafe.Slice((*byte)(unsafe.Pointer(o.number)), 8), Access: atomicRights})
	for i := range clients {
		c := newHost(t, hostConfig{QP: verbs.QPConfig{Extensions: true}})
		connect(t, c.qp, o.newQP(verbs.QPConfig{Extensions: true}))
		at := mr.Remote(0)
		if i%2 == 1 {
			shared := must(mr.RegisterShared(nil, verbs.SharedConfig{Access: atomicRights, ZeroBased: true}))(t)
			at = shared.Remote(0)
		}
		o.at, o.clients = append(o.at, at), append(o.clients, c)
	}
	return o
}

// busy has every client do that many Atomics, eight at a time, and the program its own part
// meanwhile, which is told when they are done. It returns what they were told, client by client, in order.
func (o *office) busy(each int, op func(client, i int) verbs.Request, program func(done <-chan struct{})) [][]uint64 {
	told := make([][]uint64, len(o.clients))
	var wg sync.WaitGroup
	for k, c := range o.clients {
		wg.Go(func() {
			var done [8]verbs.Completion
			for posted := 0; len(told[k]) < each; {
				for ; posted < each && posted-len(told[k]) < len(done); posted++ {
					req := op(k, posted)
					req.ID, req.Remote = uint64(posted), o.at[k]
					if _, err := c.qp.PostSend(req); !assert.NoError(o.t, err) {
						return
					}
				}
				n, err := c.cq.Wait(o.t.Context(), done[:])
				if !assert.NoError(o.t, err) {
					return
				}
				for _, d := range done[:n] {
					if !assert.NoError(o.t, d.Err()) || !assert.EqualValues(o.t, len(told[k]), d.ID) {
						return
					}
					told[k] = append(told[k], d.Value)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	program(done)
	<-done
	return told
}

// atomicCounter: nothing that is added at the same time is lost, and no two peers are told
// the same number.
func atomicCounter(t *conformance.T) {
	const clients, each = 3, 600
	o := newOffice(t, clients)
	mine := uint64(0)
	told := o.busy(each, func(int, int) verbs.Request {
		return verbs.Request{Op: verbs.OpFetchAdd, Atomic: verbs.FetchAdd(1 << 40)}
	}, func(done <-chan struct{}) {
		for {
			select {
			case <-done:
				return
			default:
			}
			for range 1000 {
				atomic.AddUint64(o.number, 1)
			}
			mine += 1000
		}
	})
	require.Equal(t, clients*each<<40|mine, atomic.LoadUint64(o.number))
	var all []uint64
	for _, list := range told {
		for i, v := range list {
			if list[i] = v >> 40; i > 0 {
				require.Less(t, list[i-1], list[i], "a later request was carried out earlier")
			}
		}
		all = append(all, list...)
	}
	slices.Sort(all)
	for i, v := range all {
		require.EqualValues(t, i, v)
	}
}

// atomicTokens: of the tokens that peers and the program put in by swaps, each is taken out
// once.
func atomicTokens(t *conformance.T) {
	const clients, each = 3, 300
	o := newOffice(t, clients)
	token := func(of, i int) uint64 { return uint64(of+1)<<32 | uint64(i) }
	in := []uint64{0}
	for k := range clients + 1 {
		for i := range each {
			in = append(in, token(k, i))
		}
	}
	var out []uint64
	told := o.busy(each, func(k, i int) verbs.Request {
		if i%2 == 0 { // with masks that let it succeed and change everything
			r := verbs.CompareSwap(0, token(k, i))
			r.CompareMask = 0
			return verbs.Request{Op: verbs.OpCompareSwap, Atomic: r}
		}
		return verbs.Request{Op: verbs.OpSwap, Atomic: verbs.Swap(token(k, i))}
	}, func(<-chan struct{}) {
		for i := range each {
			out = append(out, atomic.SwapUint64(o.number, token(clients, i)))
		}
	})
	out = append(slices.Concat(told...), append(out, atomic.LoadUint64(o.number))...)
	slices.Sort(out)
	require.Equal(t, in, out)
}

// atomicsInOrder: what one peer asks for, of any kind, is done one behind the other, and each
// completion has what was there before.
func atomicsInOrder(t *conformance.T) {
	o := newOffice(t, 1)
	*o.number = 5
	want := []uint64{5}
	ops := make([]verbs.Request, 400)
	for i := range ops {
		was := want[i]
		r := verbs.Request{Op: verbs.OpFetchAdd, Atomic: verbs.FetchAdd(uint64(i))}
		is := was + uint64(i)
		switch t.Rand().IntN(4) {
		case 1:
			is = t.Rand().Uint64()
			r = verbs.Request{Op: verbs.OpSwap, Atomic: verbs.Swap(is)}
		case 2:
			is = t.Rand().Uint64()
			r = verbs.Request{Op: verbs.OpCompareSwap, Atomic: verbs.CompareSwap(was, is)}
		case 3:
			is = was
			r = verbs.Request{Op: verbs.OpCompareSwap, Atomic: verbs.CompareSwap(was+1, 3)}
		}
		ops[i], want = r, append(want, is)
	}
	told := o.busy(len(ops), func(_, i int) verbs.Request { return ops[i] }, func(<-chan struct{}) {})
	require.Equal(t, want[:len(ops)], told[0])
	require.Equal(t, want[len(ops)], atomic.LoadUint64(o.number))
}

// atomicWindow: a window lends the right to Atomics, to memory of which peers have none otherwise.
// It is no other right, and no other right is it.
func atomicWindow(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what   string
		rights verbs.Access
		op     verbs.Op
		want   verbs.Status
	}{
		{"an Atomic with the right to it", verbs.RemoteAtomic, verbs.OpFetchAdd, verbs.StatusSuccess},
		{"an Atomic with the rights to read and write", verbs.RemoteRead | verbs.RemoteWrite, verbs.OpFetchAdd, verbs.StatusRemoteTermination},
		{"a Read with the right to Atomics", verbs.RemoteAtomic, verbs.OpRead, verbs.StatusRemoteTermination},
	}) {
		extended := hostConfig{QP: verbs.QPConfig{Extensions: true}}
		w := newHostPair(t, hostPairConfig{A: extended, B: extended})
		word := new([3]uint64)
		word[1] = 41
		under := w.b.region(w.b.pd, verbs.RegionConfig{
			Memory: unsafe.Slice((*byte)(unsafe.Pointer(word)), 24), Access: verbs.LocalRead | verbs.LocalWrite | verbs.BindWindow,
		})
		bind := w.b.newMW().BindRequest(under, 8, 8, x.rights, 1)
		run(t, w.b.qp, binds(bind), verbs.StatusSuccess)
		req := verbs.Request{ID: 7, Op: x.op, Remote: verbs.BindBuffer(bind).Remote(0)}
		want := verbs.Completion{ID: 7, QP: w.a.qp.ID(), Op: x.op, Status: x.want}
		if x.op == verbs.OpRead {
			req.Local = w.a.mr.SGE(0, 8)
		} else {
			req.Atomic = verbs.FetchAdd(1)
		}
		is := uint64(41)
		if x.want == verbs.StatusSuccess {
			want.Value, is = 41, 42
		}
		post(t, w.a.qp, req)
		completes(t, attributes(t, w.a.qp).SendCQ, want)
		require.Equal(t, is, atomic.LoadUint64(&word[1]))
	}
}
