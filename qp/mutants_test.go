//go:build mutants

package qp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// A mutant is one field of one table changed. The test binary runs itself for
// each: a process applies the mutation that it finds in its environment, and runs
// the subtest of that cell or row, which has to fail. Not to fail is to survive,
// and so is to hang: a test shall say what is wrong.
//
//	go test ./qp -tags mutants -run TestTableMutants -v

const mutantEnv = "SOFTRNIC_MUTANT"

// TestMain applies the mutation, if this is the process for one. There tests have
// less patience; that the same is enough for them without a mutation is checked
// too.
func TestMain(m *testing.M) {
	if name, ok := os.LookupEnv(mutantEnv); ok {
		patience = 3 * time.Second
		if name != "" {
			mutantNamed(name).apply()
		}
	}
	os.Exit(m.Run())
}

// mutant is a change, and the subtest that has to notice.
type mutant struct {
	name  string
	test  string // a pattern for -test.run
	apply func()
}

func mutants() []mutant { return append(stateMutants(), faultMutants()...) }

func mutantNamed(name string) mutant {
	for _, m := range mutants() {
		if m.name == name {
			return m
		}
	}
	panic("no mutant " + name)
}

// subtest is the pattern that runs a subtest and all below it.
func subtest(names ...string) string {
	for i, n := range names {
		names[i] = "^" + regexp.QuoteMeta(strings.ReplaceAll(n, " ", "_")) + "$"
	}
	return strings.Join(names, "/")
}

// stateMutants change what each cell has: the state that follows to each other
// one, the Immediate Error to another one; and take each action away.
func stateMutants() (all []mutant) {
	for _, s := range allStates() {
		for _, trig := range allTriggers() {
			if !happens(s, trig) {
				continue
			}
			c := &table[s][trig]
			add := func(what string, apply func()) {
				all = append(all, mutant{
					name: fmt.Sprintf("%v, %v: %s", s, trig, what),
					test: subtest("TestEveryTransition", s.String(), trig.String()), apply: apply,
				})
			}
			if c.Err != 0 {
				add("another error", func() { c.Err = wr.ErrInvalidModifier })
				continue
			}
			for _, next := range allStates() {
				if next != c.Next {
					add("next "+next.String(), func() { c.Next = next })
				}
			}
			for i := range numActions {
				if a := action(1) << i; c.Actions&a != 0 {
					add("no "+a.String(), func() { c.Actions &^= a })
				}
			}
		}
	}
	return all
}

// faultMutants change each column that means something in its row.
func faultMutants() (all []mutant) {
	for _, f := range allFaults() {
		c := &faults[f]
		add := func(what string, apply func()) {
			all = append(all, mutant{
				name: fmt.Sprintf("%v: %s", f, what), test: subtest("TestEveryFault", f.String()), apply: apply,
			})
		}
		if c.Status != wr.StatusFlushed { // else no work request is at fault
			add("another status", func() { c.Status = other(c.Status, wr.StatusInvalidSTag, wr.StatusWrap) })
			add("status Flushed", func() { c.Status = wr.StatusFlushed })
		}
		raises := step(c.In, c.Trigger).Actions&actEvent != 0
		switch {
		case c.Event != 0:
			add("another event", func() { c.Event = other(c.Event, wr.EventBadCRC, wr.EventBadFPDU) })
			add("no event", func() { c.Event = 0 })
		case raises && c.Status == wr.StatusFlushed: // else nobody would see it
			add("an event", func() { c.Event = wr.EventBadCRC })
		}
		if c.Sends() {
			add("another code", func() { c.Code = other(c.Code, rdmap.CodeStream, rdmap.CodeGlobal) })
		}
		for _, trig := range otherTriggers(c) {
			add("trigger "+trig.String(), func() { c.Trigger = trig })
		}
	}
	return all
}

func other[T comparable](v, a, b T) T {
	if v != a {
		return a
	}
	return b
}

// otherTriggers are those that lead to each other state from where the fault is
// met, one for each: whether a Terminate goes out is among what they change.
func otherTriggers(c *consequence) (all []trigger) {
	seen := map[wr.State]bool{c.In: true, step(c.In, c.Trigger).Next: true}
	for _, trig := range allTriggers() {
		if !happens(c.In, trig) {
			continue
		}
		if t := step(c.In, trig); t.Err == 0 && !seen[t.Next] {
			seen[t.Next] = true
			all = append(all, trig)
		}
	}
	return all
}

// run runs a subtest in a process of its own.
func run(mutation, pattern string) (verdict, output string) {
	const limit = 90 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run", pattern, "-test.failfast", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), mutantEnv+"="+mutation)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "hangs", out.String()
	case err == nil && strings.Contains(out.String(), "no tests to run"):
		return "no test", out.String()
	case err == nil:
		return "survives", out.String()
	case !errors.As(err, &exit):
		return err.Error(), ""
	case strings.Contains(out.String(), "--- FAIL: Test"):
		return "caught", out.String()
	case strings.Contains(out.String(), "cannot happen in state"):
		return "caught", out.String() // Step found it before the test
	}
	return "crashes", out.String()
}

// TestTableMutants prints how many mutants there are, and who survives.
func TestTableMutants(t *testing.T) {
	if _, ok := os.LookupEnv(mutantEnv); ok {
		return // this is a process for one
	}
	for _, whole := range []string{"^TestEveryTransition$", "^TestEveryFault$"} {
		verdict, out := run("", whole)
		require.Equal(t, "survives", verdict, "without a mutation: %s", out)
	}
	all := mutants()
	verdicts, next := make([]string, len(all)), make(chan int)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for i := range next {
				verdicts[i], _ = run(all[i].name, all[i].test)
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	workers.Wait()
	caught := 0
	for i, v := range verdicts {
		if v == "caught" {
			caught++
			continue
		}
		t.Errorf("%s: %s", v, all[i].name)
	}
	t.Logf("%d mutants of the state table, %d of the fault table; %d caught, %d not",
		len(stateMutants()), len(faultMutants()), caught, len(all)-caught)
}
