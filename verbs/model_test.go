package verbs_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestModel drives random verbs, about a third of them wrong on purpose, against a
// slow model that was written from the draft and shares no code with the RNIC.
// After each step it waits for what the model predicts and compares everything:
// results, completions, events, states, the output of all queries, and all octets
// of memory.
//
//	the model
//	  model_facts_test.go    what it knows of each object
//	  model_memory_test.go   access to memory          model_stag_test.go  states of STags
//	  model_queue_test.go    queues                    model_wire_test.go  traffic
//	  model_end_test.go      how streams end
//	the generator
//	  model_steps_test.go    which steps there are     model_..._steps_test.go  families of them
//	  model_request_test.go  work requests             model_region_test.go     regions
//	  model_modify_test.go   Modify QP                 model_last_test.go       failures, Close
//	  model_safe_test.go     which work has one possible result
//	model_world_test.go      comparison
//
// Package qp has a model of its own for traffic in bulk. Here everything is one
// thing at a time, so that there is one possible result.
//
//	SOFTRNIC_MODEL_SEED    the seed that a failed run printed
//	SOFTRNIC_MODEL_ROUNDS  how many worlds; unset or 0 for the short run
//	SOFTRNIC_MODEL_COUNTS  if set, how often each result came up is told (with -v)
func TestModel(t *testing.T) {
	seed, rounds := rand.Uint64(), 20
	if v := os.Getenv("SOFTRNIC_MODEL_SEED"); v != "" {
		var err error
		seed, err = strconv.ParseUint(v, 10, 64)
		require.NoError(t, err)
	}
	if v := os.Getenv("SOFTRNIC_MODEL_ROUNDS"); v != "" {
		n, err := strconv.Atoi(v)
		require.NoError(t, err)
		if n > 0 {
			rounds = n
		}
	}
	count := map[string]int{}
	for last := seed + uint64(rounds); seed != last; seed++ {
		rng := modelRand(seed)
		script := make([]uint64, modelSteps)
		for i := range script {
			script[i] = rng.Uint64()
		}
		log, err := runScript(script, modelPatience, count)
		if err == nil {
			continue
		}
		short, shortLog, shortErr := shrink(script, err, log)
		t.Fatalf("SOFTRNIC_MODEL_SEED=%d: %v\n\n%d of %d steps suffice (%v):\n%s", seed, err,
			len(short)-1, len(script)-1, shortErr, strings.Join(shortLog, "\n"))
	}
	if os.Getenv("SOFTRNIC_MODEL_COUNTS") != "" {
		var lines []string
		for what, n := range count {
			lines = append(lines, fmt.Sprintf("%7d  %s", n, what))
		}
		slices.Sort(lines)
		t.Log("\n" + strings.Join(lines, "\n"))
	}
}

// modelSteps is the length of a script: the first number makes the world.
const modelSteps = 1 + 200

// runScript runs a script: each number decides a step, whatever the world is like
// then. So a script stays one if steps are left out.
func runScript(script []uint64, patience time.Duration, count map[string]int) (log []string, err error) {
	w := &modelWorld{patience: patience, count: count, careful: true}
	defer func() {
		log = w.log
		if r := recover(); r != nil {
			b, ok := r.(modelBroken)
			if !ok {
				panic(r)
			}
			err = b.error
		}
		for _, n := range w.nodes {
			if n != nil {
				err = errors.Join(err, n.nic.Close())
			}
		}
	}()
	w.rng = modelRand(script[0])
	w.open()
	for range 2 {
		w.furnish()
	}
	w.careful = false
	for i, s := range script[1:] {
		w.rng = modelRand(s)
		w.log = append(w.log, fmt.Sprintf("-- step %d", i))
		w.step()
		w.compare()
	}
	w.rng = modelRand(script[0])
	w.lastAct()
	return w.log, nil
}

func modelRand(s uint64) *rand.Rand { return rand.New(rand.NewPCG(s, 0x5eed)) }

// shrink leaves out steps as long as the script fails in the same way, for some
// seconds at most.
func shrink(script []uint64, err error, log []string) ([]uint64, []string, error) {
	end := time.Now().Add(15 * time.Second)
	for size := len(script) / 2; size > 0; size /= 2 {
		for from := 1; from < len(script); {
			if time.Now().After(end) {
				return script, log, err
			}
			less := slices.Concat(script[:from], script[min(from+size, len(script)):])
			l, e := runScript(less, 2*time.Second, map[string]int{})
			if e == nil || modelKind(e) != modelKind(err) {
				from += size
				continue
			}
			script, log, err = less, l, e
		}
	}
	return script, log, err
}

// modelKind is what two reports of one disagreement have in common.
func modelKind(err error) string {
	head, _, _ := strings.Cut(err.Error(), ":")
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, head)
}

// open opens the RNICs: small ones, so that what they have runs out.
func (w *modelWorld) open() {
	for i := range w.nodes {
		n := &modelNode{world: w, number: i, block: w.one(2)}
		n.limits = verbs.Limits{
			PDs: 4, QPs: 6, WR: 16, SGE: 5, WriteSGE: 4, CQs: 6, CQE: 60, EventHandlers: 3,
			SRQs: 3, SRQWR: 12, Regions: 16, Windows: 7, PBL: 6, Physical: 1 << 17, IRD: 6, ORD: 5,
		}
		c := verbs.Config{}
		if n.block {
			c.Mode = verbs.BlockMode
		}
		if w.one(3) {
			n.limits.SharedIRD, n.limits.SharedORD = 7, 9
		}
		for _, f := range []verbs.Features{verbs.FeatureResize, verbs.FeatureChangeIRD, verbs.FeatureRaiseORD} {
			if w.one(6) {
				n.without |= f
			}
		}
		c.Limits, c.Without = n.limits, n.without
		nic, err := verbs.Open(c)
		w.must(err)
		n.nic = nic
		w.nodes[i] = n
		w.say("RNIC %d: block mode %t, without %b, shared %d %d", i, n.block, n.without, n.limits.SharedIRD, n.limits.SharedORD)
		w.must(nic.SetEventHandler(func(e verbs.Event) { n.real.add(bare(e).String()) }))
		heap := make([]byte, 40<<10)
		for k := range heap {
			heap[k] = byte(w.rng.Uint32())
		}
		n.heap = newModelArena(heap)
	}
}

// eventName leaves out which object it was.
func eventName(s string) string {
	name, _, _ := strings.Cut(s, " (")
	if strings.HasPrefix(name, "handler") {
		return "handler is called"
	}
	return name
}

// modelPatience is how long the model waits for what it predicts.
const modelPatience = 30 * time.Second
