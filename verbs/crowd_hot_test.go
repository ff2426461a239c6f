package verbs_test

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// slowEnv is how many slow connections TestHotBesideSlow has.
const slowEnv = "SOFTRNIC_CROWD"

const (
	hotWindow = 16 // messages of the hot connection that are under way
	// hotBound is how many messages of the hot connection may come back while one of a slow
	// one does, and hotEach how many more for each slow one that is under way too. Each turn of
	// either side takes all there are of the hot one, and a poller takes 16 turns there before
	// it asks for others.
	hotBound = 16 * 16 * hotWindow
	hotEach  = 4
)

// hotLink is a connection that is never idle: messages go back and forth, or it writes as much
// as it can.
type hotLink struct {
	*crowdLink
	write *verbs.Request // or nil
	trips atomic.Int64   // of messages, or Writes that have completed
}

// hotWrite is how much one of them writes.
const hotWrite = 64 << 10

func newHotLink(c *crowd, writes bool) *hotLink {
	h := &hotLink{}
	c.hot = h
	h.crowdLink = c.link(ends{}, h)
	if writes {
		from, err := h.near.PD().Register(make([]byte, hotWrite), allRights)
		require.NoError(c.t, err)
		to, err := h.far.PD().Register(make([]byte, hotWrite), allRights)
		require.NoError(c.t, err)
		h.write = &verbs.Request{Op: verbs.OpWrite, SGL: from.All(), Remote: to.Remote(0)}
	}
	for range hotWindow {
		require.NoError(c.t, second(h.far.PostRecv(verbs.Recv{SGL: h.farMR.SGL(0, crowdMessage)})))
	}
	return h
}

func (h *hotLink) start() {
	for range hotWindow {
		h.next()
	}
}

func (h *hotLink) next() {
	if h.write != nil {
		assert.NoError(h.c.t, second(h.near.PostSend(*h.write)))
		return
	}
	assert.NoError(h.c.t, second(h.near.PostRecv(verbs.Recv{SGL: h.mr.SGL(crowdMessage, crowdMessage)})))
	assert.NoError(h.c.t, second(h.near.PostSend(verbs.Request{SGL: h.mr.SGL(0, crowdMessage)})))
}

// completed takes a completion, and goes on.
func (h *hotLink) completed(wc verbs.Completion) {
	if wc.Op == verbs.OpRecv || wc.Op == verbs.OpWrite {
		h.trips.Add(1)
		h.next()
	}
}

// TestHotBesideSlow: a message on a connection that says something now and then is back before
// the connection that is always busy has had more than so many, one at a time and with all
// of them at once.
func TestHotBesideSlow(t *testing.T) {
	slow := 100
	if s := os.Getenv(slowEnv); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		slow = n
	}
	for _, h := range []how{polling, waiting, events, "polling, Writes", "waiting, Writes"} {
		t.Run(string(h), func(t *testing.T) {
			h, writes := strings.CutSuffix(string(h), ", Writes")
			c := newCrowd(t, 2, false, make([]ends, slow)...)
			c.paced = make(chan *crowdLink, slow)
			hot := newHotLink(c, writes)
			c.consumers(0, how(h))
			hot.start()
			var worst int64
			back := func() {
				select {
				case l := <-c.paced:
					worst = max(worst, l.during)
				case <-c.ctx.Done():
					require.Fail(t, "a slow connection starves", "%d messages of the hot one", hot.trips.Load())
				}
			}
			begin := func(l *crowdLink) {
				l.began.Store(-1)
				l.next()
				l.began.Store(hot.trips.Load())
			}
			for _, l := range c.links {
				begin(l)
				back()
			}
			for _, l := range c.links {
				begin(l)
			}
			for range c.links {
				back()
			}
			require.Less(t, worst, int64(hotBound+hotEach*slow))
			t.Logf("%d messages of the hot connection, %d at most during a slow one's", hot.trips.Load(), worst)
		})
	}
}
