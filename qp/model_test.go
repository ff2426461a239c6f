package qp_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// The model test connects queue pairs, lets both sides post random work, and
// compares all memory and every completion with a slow model of what the RFCs
// and the draft promise. What is posted has a defined result by construction:
// see model_gen_test.go.
//
// Two variables of the environment replay and prolong it:
//
//	SOFTRNIC_MODEL_SEED    the seed that a failed run printed
//	SOFTRNIC_MODEL_ROUNDS  rounds of each case; 0 or unset for the short run
const (
	modelSeedEnv   = "SOFTRNIC_MODEL_SEED"
	modelRoundsEnv = "SOFTRNIC_MODEL_ROUNDS"
)

// modelBound is how long a case may take before it counts as hung.
const modelBound = 2 * time.Minute

// modelCase is a setting of the model test. Zero fields have defaults, see
// withDefaults.
type modelCase struct {
	name    string
	link    modelLink
	crc     bool
	markers [2]bool // whether side i asks for markers
	depth   int     // of all work queues
	reads   int     // IRD and ORD
	pairs   int     // connections between the two RNICs
	cqs     cqLayout
	consume []consumer // goroutines at each CQ
	rounds  int
	ops     int // at most, posted by one side in one round
	biggest int // message, in octets
}

// cqLayout says which work queues share a CQ.
type cqLayout int

const (
	cqPerQueue cqLayout = iota
	cqPerPair
	cqForAll
)

func (c modelCase) withDefaults() modelCase {
	set := func(p *int, d int) {
		if *p == 0 {
			*p = d
		}
	}
	set(&c.depth, 64)
	set(&c.reads, 16)
	set(&c.pairs, 1)
	set(&c.rounds, 3)
	set(&c.ops, 60)
	set(&c.biggest, 1<<20)
	if len(c.consume) == 0 {
		c.consume = []consumer{consumeWait}
	}
	return c
}

func modelCases() []modelCase {
	var cases []modelCase
	for bits := range 8 {
		c := modelCase{link: linkTCP, crc: bits&1 != 0, markers: [2]bool{bits&2 != 0, bits&4 != 0}}
		c.name = fmt.Sprintf("TCP/crc=%t,markers=%t,%t", c.crc, c.markers[0], c.markers[1])
		if bits&1 == 0 {
			c.consume = []consumer{consumePoll}
		}
		cases = append(cases, c)
	}
	four := []consumer{consumePoll, consumePoll, consumePoll, consumePoll}
	mixed := []consumer{consumePoll, consumeWait, consumeEvents}
	return append(cases,
		modelCase{name: "wrapped TCP", link: linkWrapped},
		modelCase{name: "pipe", link: linkPipe},
		modelCase{name: "pipe/crc,markers", link: linkPipe, crc: true, markers: [2]bool{true, true}},
		modelCase{name: "TLS", link: linkTLS, crc: true, biggest: 1 << 18},
		modelCase{name: "one poller", link: linkTCP, cqs: cqPerPair, consume: four[:1]},
		modelCase{name: "four pollers", link: linkTCP, crc: true, consume: four},
		modelCase{name: "three waiters", link: linkTCP, cqs: cqPerPair, consume: []consumer{consumeWait, consumeWait, consumeWait}},
		modelCase{name: "events", link: linkTCP, consume: []consumer{consumeEvents}},
		modelCase{name: "events on a pipe", link: linkPipe, cqs: cqPerPair, consume: []consumer{consumeEvents}, rounds: 2},
		modelCase{name: "poller, waiter and events", link: linkTCP, cqs: cqPerPair, consume: mixed},
		modelCase{name: "depth 2", link: linkTCP, crc: true, depth: 2, biggest: 1 << 17},
		modelCase{name: "depth 1", link: linkTCP, depth: 1, biggest: 1 << 17, consume: four[:2]},
		modelCase{name: "one read", link: linkTCP, reads: 1, crc: true},
		modelCase{name: "one read, depth 2, pipe", link: linkPipe, reads: 1, depth: 2, biggest: 1 << 16},
		modelCase{name: "small messages", link: linkTCP, biggest: 256, ops: 400, depth: 16, consume: four[:1]},
		modelCase{name: "small messages, waiting", link: linkTCP, crc: true, biggest: 256, ops: 600, depth: 256},
		modelCase{name: "four pairs, a CQ each", link: linkTCP, pairs: 4, cqs: cqPerPair, rounds: 2},
		modelCase{name: "four pairs, one CQ", link: linkTCP, pairs: 4, cqs: cqForAll, crc: true, rounds: 2, consume: mixed},
		modelCase{name: "twelve pairs, one CQ, poll", link: linkTCP, pairs: 12, cqs: cqForAll, rounds: 2, ops: 60, biggest: 1 << 12, consume: four[:2]},
	)
}

func TestModel(t *testing.T) {
	seed, rounds := modelSettings(t)
	for _, c := range modelCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("to replay: %s=%d go test -run '%s' ./qp", modelSeedEnv, seed, t.Name())
				}
			})
			if rounds > 0 {
				c.rounds = rounds
			}
			h := fnv.New64a()
			h.Write([]byte(c.name))
			runModel(t, c.withDefaults(), rand.New(rand.NewPCG(seed, h.Sum64())))
		})
	}
}

func modelSettings(t *testing.T) (seed uint64, rounds int) {
	seed = rand.Uint64()
	var err error
	if v := os.Getenv(modelSeedEnv); v != "" {
		seed, err = strconv.ParseUint(v, 10, 64)
		require.NoError(t, err)
	}
	if v := os.Getenv(modelRoundsEnv); v != "" {
		rounds, err = strconv.Atoi(v)
		require.NoError(t, err)
	}
	return seed, rounds
}

// runModel runs a case.
func runModel(t *testing.T, c modelCase, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(t.Context(), modelBound)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var sides [2]*modelSide
	for i := range sides {
		sides[i] = newModelSide(t, c, fail)
	}
	pairs := make([]*modelPair, c.pairs)
	for i := range pairs {
		pairs[i] = newModelPair(t, c, rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64())), sides)
	}
	var consumers errgroup.Group
	stop, stopConsumers := context.WithCancel(ctx)
	defer stopConsumers()
	for _, s := range sides {
		s.startConsumers(stop, &consumers, c.consume)
	}
	var runs errgroup.Group
	for _, p := range pairs {
		runs.Go(func() error {
			for round := range c.rounds {
				if err := p.round(ctx, c); err != nil {
					fail(err)
					return fmt.Errorf("round %d: %w", round, err)
				}
			}
			return nil
		})
	}
	err := runs.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause // the first failure, not what followed from it
	}
	require.NoError(t, err)
	for _, p := range pairs {
		require.NoError(t, p.close(ctx))
	}
	stopConsumers()
	require.NoError(t, consumers.Wait())
	require.NoError(t, context.Cause(ctx))
}

// modelLink makes a connected pair; the first end is MPA's Initiator.
type modelLink func(testing.TB) (net.Conn, net.Conn)

// streams are what an MPA startup over conns would have come to.
func (c modelCase) streams(conns [2]net.Conn) [2]*verbs.StreamConfig {
	var s [2]*verbs.StreamConfig
	for i := range s {
		s[i] = &verbs.StreamConfig{
			Conn: conns[i], Role: [2]mpa.Role{mpa.Initiator, mpa.Responder}[i], CRC: c.crc,
			MarkersIn: c.markers[i], MarkersOut: c.markers[1-i],
		}
	}
	return s
}
