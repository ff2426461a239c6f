package rnictest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestChaos runs traffic with random plans, and holds what comes of it against what has to: each request completes exactly once, in the
// order of posting; what is received is what was sent, in order, without a gap; what is read is what was there; nothing is left. It runs 60 plans, or for
// SOFTRNIC_CHAOS_SECONDS (make chaos).
func TestChaos(t *testing.T) {
	seconds, _ := strconv.Atoi(os.Getenv("SOFTRNIC_CHAOS_SECONDS"))
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	total := tally{}
	for seed := uint64(0); seed < 60 || time.Now().Before(end); seed++ {
		ok := t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { newChaos(t, seed).run(&total) })
		if !ok {
			break
		}
	}
	t.Logf("%+v", total)
	assert.Positive(t, total.Whole)
	assert.Positive(t, total.Ended)
}

// tally is what came of the plans.
type tally struct {
	Whole, Ended, Refused int // streams: no harm done; over before the end; not begun
	Requests, Received    int
}

// chaos is one plan's run.
type chaos struct {
	*testing.T
	r    *rand.Rand
	c    Config
	ends [2]*chaotic
	// between, if set, is called between two posts. Traffic that stands still for so many looks has ended.
	between func()
	looks   int
}

// chaotic is one end.
type chaotic struct {
	*End
	posted   []verbs.Request // accepted, in order
	done     int             // of them
	received int
	source   []byte // what the peer reads
	read     [][]byte
	mr       *verbs.MR
}

const (
	chaosRecvs = 64
	chaosSize  = 4096
)

func newChaos(t *testing.T, seed uint64) *chaos {
	x := &chaos{T: t, r: rand.New(rand.NewPCG(seed, 1)), looks: 3}
	x.c = Config{Loopback: seed%2 == 0, Recvs: chaosRecvs, RecvSize: chaosSize}
	x.c.CM.NoCRC, x.c.CM.Markers = x.r.IntN(4) == 0, x.r.IntN(4) == 0
	plan := x.plan(seed%3 == 0)
	if x.c.Faults = plan; seed%3 == 0 {
		x.c.Faults, x.c.Between = "", plan
	}
	t.Logf("seed %d, loopback %t, CRC %t, plan:\n%s", seed, x.c.Loopback, !x.c.CM.NoCRC, plan)
	return x
}

// plan makes one: of faults that do not change data without a trace, nor lose completions, which a program cannot see.
func (x *chaos) plan(between bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d\n", x.r.Uint32())
	for range 1 + x.r.IntN(4) {
		dir := []string{"", " in", " out"}[x.r.IntN(3)]
		ms := 1 + x.r.IntN(4)
		what := []string{
			"cut", "reset", "half-close", fmt.Sprintf("stall %dms", ms), fmt.Sprintf("delay %dms", ms), fmt.Sprintf("delay %dms", ms),
			fmt.Sprintf("split %d", 1+x.r.IntN(40)), "coalesce 3 2ms", "drop", "double", "terminate 0x0207", "flip behind crc", "split 2", "coalesce 2 1ms",
		}
		pick := x.r.IntN(len(what))
		if what[pick] == "flip behind crc" && x.c.CM.NoCRC { // no end would notice
			pick = 0
		}
		count := []string{fmt.Sprint(1 + x.r.IntN(60)), fmt.Sprintf("every %d", 2+x.r.IntN(9)), fmt.Sprintf("chance 0.%02d", 1+x.r.IntN(20))}[x.r.IntN(3)]
		switch k := x.r.IntN(8); {
		case k < 4:
			fmt.Fprintf(&b, "%s %s%s: %s\n", []string{"segment", "message"}[k&1], count, dir, what[pick])
		case k == 4:
			fmt.Fprintf(&b, "octet %d%s: %s\n", 1+x.r.IntN(50000), dir, []string{"cut", "reset", "stall 2ms", "split"}[x.r.IntN(4)])
		case k == 5:
			fmt.Fprintf(&b, "octet every %d%s: split\n", 50+x.r.IntN(2000), dir)
		case between || k == 6:
			fmt.Fprintf(&b, "time %dms: %s\n", 5+x.r.IntN(30), []string{"cut", "reset", "half-close", "stall 3ms"}[x.r.IntN(4)])
		default:
			fmt.Fprintf(&b, "%s\n", []string{
				"post " + count + ": fail", "completion " + count + dir + ": delay 2ms", "connection 1: ird 1",
				"post " + count + " of send: invalidate stag",
			}[x.r.IntN(4)])
		}
	}
	return b.String()
}

func (x *chaos) run(total *tally) {
	a, b, err := TryPair(x.T, x.c)
	if err != nil {
		total.Refused++
		return
	}
	for i, e := range []*End{a, b} {
		x.ends[i] = x.prepare(e)
	}
	peers := [2]*chaotic{x.ends[1], x.ends[0]}
	for range 20 + x.r.IntN(chaosRecvs-20) {
		i := x.r.IntN(2)
		x.post(x.ends[i], peers[i])
		if x.between != nil {
			x.between()
		}
		if x.r.IntN(3) == 0 {
			x.collect(x.ends[x.r.IntN(2)], peers, 0)
		}
	}
	whole := x.settle(peers)
	for i, e := range x.ends {
		assert.Equal(x, len(e.posted), e.done, "completions of end %d", i)
		total.Requests += e.done
		total.Received += e.received
	}
	if whole {
		total.Whole++
	} else {
		total.Ended++
	}
}

func (x *chaos) prepare(e *End) *chaotic {
	c := &chaotic{End: e}
	c.source = make([]byte, chaosSize)
	for i := range c.source {
		c.source[i] = byte(x.r.Uint32())
	}
	var err error
	c.mr, err = e.QP.PD().Register(c.source, All)
	require.NoError(x, err)
	return c
}

// content is the n-th message of an end: its number, and octets that follow from it.
func content(n, size int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(n))
	for len(b) < size {
		b = append(b, byte(n*7+len(b)))
	}
	return b
}

// post posts a Send or an RDMA Read.
func (x *chaos) post(e, peer *chaotic) {
	req := verbs.Request{ID: uint64(len(e.posted))}
	var sink []byte
	if x.r.IntN(3) == 0 {
		sink = make([]byte, 1+x.r.IntN(chaosSize))
		mr, err := e.QP.PD().Register(sink, All)
		if errors.Is(err, verbs.ErrInvalidRNIC) { // it was made to fail
			return
		}
		require.NoError(x, err)
		at := peer.mr.SGE(0, len(sink))
		req.Op, req.Local, req.Remote = verbs.OpRead, mr.SGE(0, len(sink)), verbs.Remote{STag: at.STag, TO: at.TO}
	} else {
		buf := content(len(e.posted), 4+x.r.IntN(chaosSize-4))
		mr, err := e.QP.PD().Register(buf, All)
		if errors.Is(err, verbs.ErrInvalidRNIC) {
			return
		}
		require.NoError(x, err)
		req.SGL = mr.All()
	}
	_, err := e.QP.PostSend(req)
	switch {
	case err == nil:
		e.posted = append(e.posted, req)
		e.read = append(e.read, sink)
	case !errors.Is(err, verbs.ErrInvalidState) && !errors.Is(err, verbs.ErrQueueFull) && !errors.Is(err, verbs.ErrInvalidRNIC):
		x.Errorf("post: %v", err)
	}
}

// collect takes the completions that are there, or that come within d, and reports whether any did.
func (x *chaos) collect(e *chaotic, peers [2]*chaotic, d time.Duration) bool {
	var done [16]verbs.Completion
	n := e.CQ.Poll(done[:])
	if n == 0 && d > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		n, _ = e.CQ.Wait(ctx, done[:])
	}
	peer := peers[0]
	if e == peer {
		peer = peers[1]
	}
	for _, c := range done[:n] {
		if c.Op == verbs.OpRecv {
			x.received(e, peer, c)
			continue
		}
		require.Less(x, e.done, len(e.posted), "a completion too many: %v", c)
		assert.Equal(x, e.posted[e.done].ID, c.ID, "the order of completions")
		if sink := e.read[e.done]; sink != nil && c.Status == verbs.StatusSuccess {
			assert.True(x, bytes.Equal(peer.source[:len(sink)], sink), "read %d", c.ID)
		}
		e.done++
	}
	return n > 0
}

// received looks at what a receive has got: the next Send of the peer.
func (x *chaos) received(e, peer *chaotic, c verbs.Completion) {
	assert.Equal(x, uint64(e.received), c.ID, "the order of receives")
	e.received++
	if c.Status != verbs.StatusSuccess {
		return
	}
	got := e.Recv[int(c.ID)*chaosSize:][:c.Bytes]
	sends := 0
	for i, r := range peer.posted {
		if r.Op != verbs.OpSend {
			continue
		}
		if sends == int(c.ID) {
			assert.True(x, bytes.Equal(content(i, len(got)), got) && len(got) == int(r.SGL[0].Length), "receive %d is send %d", c.ID, i)
			return
		}
		sends++
	}
	x.Errorf("receive %d: nothing was sent for it", c.ID)
}

// settle waits until all has completed, or nothing moves any more: then it ends the stream. It reports whether all did.
func (x *chaos) settle(peers [2]*chaotic) (whole bool) {
	idle := 0
	for idle < x.looks {
		if x.ends[0].done == len(x.ends[0].posted) && x.ends[1].done == len(x.ends[1].posted) && x.ends[0].QP.State() == verbs.StateRTS && x.ends[1].QP.State() == verbs.StateRTS {
			whole = true
			break
		}
		moved := x.collect(x.ends[0], peers, 30*time.Millisecond)
		if !x.collect(x.ends[1], peers, 30*time.Millisecond) && !moved {
			idle++
		}
	}
	for _, e := range x.ends {
		_ = e.Conn.Abort()
		if e.QP.State() == verbs.StateIdle { // a good close: what was posted since waits for the next stream
			if err := e.QP.Modify(verbs.ModifyQP{Next: verbs.StateError}); !errors.Is(err, verbs.ErrInvalidRNIC) {
				require.NoError(x, err)
			}
		}
	}
	for _, e := range x.ends {
		for deadline := time.Now().Add(20 * time.Second); e.received < chaosRecvs || e.done < len(e.posted); {
			if !x.collect(e, peers, time.Second) && time.Now().After(deadline) {
				x.Errorf("%d of %d requests, and %d of %d receives, have completed", e.done, len(e.posted), e.received, chaosRecvs)
				break
			}
		}
		assert.False(x, x.collect(e, peers, 0), "a completion too many")
	}
	return whole
}
