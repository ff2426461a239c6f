package verbs_test

import "testing"

// TestManyOnOneCQ: 64 goroutines look at one CQ, each in its way. Every request completes
// once, to one of them; and when all but one have left, that one serves alone.
func TestManyOnOneCQ(t *testing.T) {
	const links, rounds, many = 12, 20, 64
	for name, c := range map[string]struct {
		ways []how
		last how
	}{
		"polling":              {several(many-1, polling), polling},
		"waiting":              {several(many-1, waiting), waiting},
		"events":               {several(many-1, events), events},
		"all, the last polls":  {several(many-1, polling, waiting, events), polling},
		"all, the last waits":  {several(many-1, polling, waiting, events), waiting},
		"all, the last sleeps": {several(many-1, polling, waiting, events), events},
	} {
		t.Run(name, func(t *testing.T) {
			crowd := newCrowd(t, rounds, false, make([]ends, links)...)
			stop := crowd.consumers(0, c.ways...)
			crowd.consumers(0, c.last)
			crowd.start()
			crowd.await(crowd.half)
			stop()
			crowd.finish()
		})
	}
}

// TestSharedAndSeparateCQs: queue pairs make progress however their CQs are shared, as long as
// somebody looks at the one that tells of it.
func TestSharedAndSeparateCQs(t *testing.T) {
	const rounds = 30
	type looks [][]how // at each CQ
	ways := []how{polling, waiting, events}
	run := func(name string, read bool, links []ends, l looks) {
		t.Run(name, func(t *testing.T) {
			crowd := newCrowd(t, rounds, read, links...)
			for q, ways := range l {
				crowd.consumers(q, ways...)
			}
			crowd.start()
			crowd.finish()
		})
	}
	// One CQ for sending, one for receiving, and nobody looks at the other.
	apart := []ends{{0, 1}, {0, 1}, {0, 1}}
	for _, h := range ways {
		run("send CQ alone, "+string(h), true, apart, looks{{h}})
		run("receive CQ alone, "+string(h), false, apart, looks{nil, {h}})
		run("one link, send CQ alone, "+string(h), true, apart[:1], looks{{h}})
		run("one link, receive CQ alone, "+string(h), false, apart[:1], looks{nil, {h}})
	}
	// Each receives where the other one's sends complete.
	crossed := []ends{{0, 1}, {1, 0}, {0, 1}, {1, 0}}
	ring := []ends{{0, 1}, {1, 2}, {2, 0}, {0, 0}, {1, 1}, {2, 2}}
	for _, h := range ways {
		for _, g := range ways {
			run("crossed, "+string(h)+" and "+string(g), false, crossed, looks{{h}, {g}})
		}
		run("ring, "+string(h), false, ring, looks{{h}, {polling}, {waiting, events}})
		run("ring of Reads, "+string(h), true, ring, looks{{h}, {events}, {waiting, polling}})
		// More groups than one look at the send CQ visits.
		run("wide, "+string(h), true, wide(20), looks{{h}})
	}
}

// wide are links that send to one CQ, and receive to one each.
func wide(n int) (list []ends) {
	for i := range n {
		list = append(list, ends{0, 1 + i})
	}
	return list
}
