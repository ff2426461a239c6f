package cases

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// rv9_4 is the handlers of completions and of asynchronous events: verbs draft 9.4.
var rv9_4 = []conformance.Case{
	apiCase("9.4.1/one-at-least", oneHandlerAtLeast, "RV-9.4.1-M1"),
	apiCase("9.4.1/results", completionHandlerResults, "RV-9.4.1-M2"),
	apiCase("9.4.1/modifiers", onHost(completionHandlerModifiers), "RV-9.4.1-M3"),
	apiCase("9.4.2/results", eventHandlerResults, "RV-9.4.2-M1"),
	apiCase("9.4.2/modifiers", eventHandlerModifiers, "RV-9.4.2-M2"),
	apiCase("9.4.2/only-one", onHost(onlyOneEventHandler), "RV-9.4.2-M2"),
}

// call is one of a completion event handler.
type call struct {
	handler string
	cq      *verbs.CQ
}

// calls takes the calls of several completion event handlers.
type calls struct {
	t   *conformance.T
	nic *verbs.RNIC
	all chan call
}

func newCalls(t *conformance.T, nic *verbs.RNIC) *calls { return &calls{t, nic, make(chan call, 100)} }

// handler is a function that is known by a name.
func (c *calls) handler(name string) func(*verbs.CQ) {
	return func(cq *verbs.CQ) { c.all <- call{name, cq} }
}

// set is Set Completion Event Handler, with such a function.
func (c *calls) set(id verbs.HandlerID, name string) verbs.HandlerID {
	return must(setHandler(c.nic, id, c.handler(name)))(c.t)
}

// queue creates a CQ of a handler.
func (c *calls) queue(id verbs.HandlerID) *verbs.CQ {
	return must(c.nic.CreateCQ(verbs.CQConfig{Entries: 32, Handler: id}))(c.t)
}

// are waits for the next call.
func (c *calls) are(handler string, cq *verbs.CQ) {
	got := receive(c.t, c.all, "handler %s is not called", handler)
	require.Equal(c.t, handler, got.handler, "who is called")
	require.Same(c.t, cq, got.cq, "with what CQ")
}

// none closes the RNIC, which waits for handlers, and says that there were no calls
// but those that were waited for.
func (c *calls) none() {
	require.NoError(c.t, c.nic.Close())
	require.Empty(c.t, c.all, "calls")
}

// oneHandlerAtLeast: an RNIC has one handler however few it is opened with.
func oneHandlerAtLeast(t *conformance.T) {
	for _, limit := range []int{0, 1} {
		n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{EventHandlers: limit}}})
		most := queried(t, n.nic).Limits.EventHandlers
		require.GreaterOrEqual(t, most, 1)
		if limit > 0 {
			require.Equal(t, limit, most)
		}
		c := newCalls(t, n.nic)
		cq := c.queue(c.set(0, "the one"))
		n.flush(cq, 1)
		require.NoError(t, cq.Notify(verbs.NotifyNext))
		n.flush(cq, 1)
		c.are("the one", cq)
		c.none()
	}
	nic, err := verbs.Open(verbs.Config{Limits: verbs.Limits{EventHandlers: -1}})
	require.ErrorIs(t, err, verbs.ErrInvalidModifier)
	require.Nil(t, nic)
}

func completionHandlerResults(t *conformance.T) {
	const most = 3
	nic := openRNIC(t, verbs.Config{Limits: verbs.Limits{EventHandlers: most}})
	set := func(id verbs.HandlerID, h func(*verbs.CQ)) func() error {
		return func() error { return second(setHandler(nic, id, h)) }
	}
	f := func(*verbs.CQ) {}
	var ids []verbs.HandlerID
	for range most {
		id := must(nic.AddCompletionHandler(f))(t)
		ids = append(ids, id)
	}
	refuses(t, "one too many", verbs.ErrInsufficientResources, set(0, f), queries(nic.Query))
	require.NoError(t, set(ids[1], f)(), "to change one")
	require.NoError(t, set(ids[0], nil)(), "to clear one")
	for name, verb := range map[string]func() error{
		"to change one that is not": set(ids[2]+1000, f), "to clear one that is not": set(ids[2]+1000, nil),
		"to change a cleared one": set(ids[0], f), "to clear a cleared one": set(ids[0], nil), "to clear zero": set(0, nil),
	} {
		refuses(t, name, verbs.ErrInvalidEventHandler, verb, queries(nic.Query))
	}
	require.NoError(t, set(0, f)(), "its place is free")
	refuses(t, "one too many again", verbs.ErrInsufficientResources, set(0, f), queries(nic.Query))
	require.NoError(t, nic.Close())
	for name, verb := range map[string]func() error{"register": set(0, f), "change": set(ids[1], f), "clear": set(ids[1], nil), "unknown": set(1, nil)} {
		assert.ErrorIs(t, verb(), verbs.ErrInvalidRNIC, name)
	}
}

// completionHandlerModifiers registers, changes and clears. A handler is called with
// its own CQs, and only if a notification was asked for.
func completionHandlerModifiers(t *conformance.T, n *host) {
	c := newCalls(t, n.nic)
	one, two := c.set(0, "one"), c.set(0, "two")
	require.NotZero(t, one)
	require.NotZero(t, two)
	require.NotEqual(t, one, two)
	first, other, own, bare := c.queue(one), c.queue(one), c.queue(two), n.newCQ(32)
	shows(t, first, roomOf(first), one)
	shows(t, own, roomOf(own), two)
	complete := func(cq *verbs.CQ) {
		require.NoError(t, cq.Notify(verbs.NotifyNext))
		n.flush(cq, 2)
	}
	for _, cq := range []*verbs.CQ{first, other, own, bare} {
		n.flush(cq, 1) // nobody has asked
	}
	for cq, handler := range map[*verbs.CQ]string{first: "one", other: "one", own: "two"} {
		complete(bare)
		complete(cq)
		c.are(handler, cq)
		n.flush(cq, 1) // once for each request
	}

	t.Part("changed")
	require.Equal(t, one, c.set(one, "another"))
	for cq, handler := range map[*verbs.CQ]string{first: "another", other: "another", own: "two"} {
		complete(cq)
		c.are(handler, cq)
	}
	t.Part("cleared")
	require.NoError(t, n.nic.RemoveCompletionHandler(one))
	complete(first)
	complete(other)
	complete(own)
	c.are("two", own)
	t.Part("registered again")
	three := c.set(0, "three")
	require.NotContains(t, []verbs.HandlerID{0, two}, three)
	late := c.queue(three)
	complete(late)
	c.are("three", late)
	require.NoError(t, first.Notify(verbs.NotifyNext))
	n.flush(first, 1) // its handler is no more
	complete(own)
	c.are("two", own)
	t.Part("")
	c.none()
}

func eventHandlerResults(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{})
	for range 2 {
		for name, h := range map[string]func(verbs.Event){"one": func(verbs.Event) {}, "another": func(verbs.Event) {}, "none": nil} {
			require.NoError(t, nic.SetEventHandler(h), name)
		}
	}
	require.NoError(t, nic.Close())
	require.ErrorIs(t, nic.SetEventHandler(func(verbs.Event) {}), verbs.ErrInvalidRNIC)
	require.ErrorIs(t, nic.SetEventHandler(nil), verbs.ErrInvalidRNIC)
}

// eventHandlerModifiers has two RNICs raise an event of each kind of resource. The
// records come to the RNIC's own handler and name the resource, each by an identifier
// with which the program finds it.
func eventHandlerModifiers(t *conformance.T) {
	var nodes []*host
	for range 2 {
		n := newHost(t, hostConfig{})
		n.newQP(verbs.QPConfig{}) // others, so that identifiers differ
		nodes = append(nodes, n)
	}
	nodes[1].newCQ(8)
	for i, n := range nodes {
		t.Part("RNIC %d", i)
		qp, cq, srq := n.newQP(verbs.QPConfig{}), n.newCQ(8), n.newSRQ(verbs.SRQConfig{})
		fault.Provoke(qp)
		e := n.events.next()
		require.Equal(t, verbs.Event{ID: verbs.EventLocalQPCatastrophic, QP: qp.ID()}, e)
		require.Same(t, qp, n.nic.QP(e.QP))
		fault.Provoke(cq)
		e = n.events.next()
		require.Equal(t, verbs.Event{ID: verbs.EventCQOperation, CQ: cq.ID()}, e)
		require.Same(t, cq, n.nic.CQ(e.CQ))
		fault.Provoke(srq)
		e = n.events.next()
		require.Equal(t, verbs.Event{ID: verbs.EventSRQCatastrophic, SRQ: srq.ID()}, e)
		require.Same(t, srq, n.nic.SRQ(e.SRQ))
		for _, other := range nodes {
			other.quiet()
		}
	}
	t.Part("of the RNIC itself")
	fault.Provoke(nodes[0].nic)
	nodes[0].events.are(verbs.Event{ID: verbs.EventRNICCatastrophic})
	nodes[1].quiet()
	require.NoError(t, nodes[0].nic.Close())
	require.Empty(t, nodes[0].events.events)
}

// onlyOneEventHandler: a new one takes the place of the old, and none leaves events to
// nobody.
func onlyOneEventHandler(t *conformance.T, n *host) {
	fails := func() verbs.Event {
		qp := n.newQP(verbs.QPConfig{})
		fault.Provoke(qp)
		return verbs.Event{ID: verbs.EventLocalQPCatastrophic, QP: qp.ID()}
	}
	old := n.events
	old.are(fails())
	now := logEvents(t, n.nic)
	now.are(fails(), fails())
	require.NoError(t, n.nic.SetEventHandler(nil))
	fails()
	fails()
	last := logEvents(t, n.nic)
	last.are(fails())
	require.NoError(t, n.nic.Close()) // waits for handlers
	require.Empty(t, old.events)
	require.Empty(t, now.events)
	require.Empty(t, last.events)
}

// setHandler is Set Completion Event Handler (9.4.1): it registers with an identifier
// of 0, and clears without a handler.
func setHandler(nic *verbs.RNIC, id verbs.HandlerID, h func(*verbs.CQ)) (verbs.HandlerID, error) {
	switch {
	case id == 0:
		return nic.AddCompletionHandler(h)
	case h == nil:
		return id, nic.RemoveCompletionHandler(id)
	}
	return id, nic.ReplaceCompletionHandler(id, h)
}
