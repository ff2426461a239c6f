package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// smith builds programs and asks them; the forge does, and what stands in for it in
// tests.
type smith interface {
	healthy(ctx context.Context) (program string, err error)
	build(ctx context.Context, name string, m *mutant) (program string, err error)
	ask(ctx context.Context, program, name string) (passed bool, why string, err error)
	drop(name string)
}

// asking is how many cases of a mutant run at a time.
const asking = 4

// verdict is what became of a mutant.
type verdict struct {
	caught bool
	took   time.Duration
	text   string   // by which case and why, or what went wrong
	all    []string // by each case and why
}

// lap is how long a mutant took, from when it began to be built.
type lap struct {
	m    *mutant
	took time.Duration
}

// slowest prints the ten mutants that took longest, of those that took a second: to make it
// all faster begins with them.
func slowest(laps []lap, out io.Writer) {
	slices.SortFunc(laps, func(a, b lap) int { return cmp.Compare(b.took, a.took) })
	for _, l := range laps[:min(10, len(laps))] {
		if l.took > time.Second {
			fmt.Fprintf(out, "slow    %v: %v\n", l.m, l.took.Round(100*time.Millisecond))
		}
	}
}

// hunt builds and judges the mutants, jobs at a time, prints each as it is judged,
// and answers how many were caught. The cases that they name have to pass without a
// fault: one that does not catches nothing.
// What each case has seen goes to more.
func hunt(ctx context.Context, s smith, mutants []mutant, jobs int, out, more io.Writer) (caught int) {
	ill, err := ailing(ctx, s, mutants, jobs)
	if err != nil {
		fmt.Fprintf(out, "without a fault: %v\n", err)
		return 0
	}
	var mu sync.Mutex
	var laps []lap
	var g errgroup.Group
	// A mutant that makes its cases wait needs no processor for that.
	g.SetLimit(4 * jobs)
	building := make(chan struct{}, jobs)
	for i := range mutants {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			m := &mutants[i]
			name := fmt.Sprintf("mutant%d", i)
			v := try(ctx, s, name, m, ill, building)
			s.drop(name)
			mu.Lock()
			defer mu.Unlock()
			laps = append(laps, lap{m, v.took})
			word := "MISSED"
			if v.caught {
				word = "caught"
				caught++
			}
			fmt.Fprintf(out, "%s  %v (%s): %s\n", word, m, m.file, v.text)
			for _, line := range v.all {
				fmt.Fprintf(more, "        %s\n", line)
			}
			return nil
		})
	}
	_ = g.Wait()
	slowest(laps, out)
	return caught
}

// ailing runs all cases that the mutants name in the program as it is, and answers
// which do not pass there, and why.
func ailing(ctx context.Context, s smith, mutants []mutant, jobs int) (map[string]string, error) {
	program, err := s.healthy(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range mutants {
		names = append(names, m.cases...)
	}
	slices.Sort(names)
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(jobs)
	ill := map[string]string{}
	for _, c := range slices.Compact(names) {
		g.Go(func() error {
			passed, why, err := s.ask(ctx, program, c)
			if err != nil {
				why = err.Error()
			}
			if !passed || err != nil {
				mu.Lock()
				ill[c] = why
				mu.Unlock()
			}
			return nil
		})
	}
	_ = g.Wait()
	return ill, ctx.Err()
}

// try builds a mutant, holding a place in building, and asks each of its cases. All
// have to fail.
func try(ctx context.Context, s smith, name string, m *mutant, ill map[string]string, building chan struct{}) verdict {
	for _, c := range m.cases {
		if why, ok := ill[c]; ok {
			return verdict{text: fmt.Sprintf("case %s does not pass without the fault: %s", c, why)}
		}
	}
	building <- struct{}{}
	start := time.Now()
	program, err := s.build(ctx, name, m)
	leave := sync.OnceFunc(func() { <-building })
	defer leave()
	if err != nil {
		return verdict{text: err.Error(), took: time.Since(start)}
	}
	if !slices.Contains(m.cases, anyCase) { // all of them keep a processor busy
		leave()
	}
	missed := make([]string, len(m.cases))
	all := make([]string, len(m.cases))
	var g errgroup.Group
	g.SetLimit(asking) // many wait in vain for something
	for i, c := range m.cases {
		g.Go(func() error {
			passed, why, err := s.ask(ctx, program, c)
			switch {
			case err != nil:
				missed[i] = err.Error()
			case passed:
				missed[i] = fmt.Sprintf("case %s passes", c)
			}
			all[i] = fmt.Sprintf("%s: %s", c, why)
			return nil
		})
	}
	_ = g.Wait()
	if text := cmp.Or(missed...); text != "" {
		return verdict{text: text, all: all, took: time.Since(start)}
	}
	text := all[0]
	if n := len(all) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return verdict{true, time.Since(start), text, all}
}
