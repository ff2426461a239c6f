package rnictest

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/proflabel"
)

// mark is what distinguishes the goroutines that a pair has started, itself or by those it started: they inherit it.
const mark = "rnictest"

var pairs atomic.Uint64

// watched are the goroutines of one pair, and of what the test starts later. Those of an RNIC have labels of their own.
type watched struct {
	mark string
	nics []string // their IDs
}

// watch begins to watch, with the calling goroutine.
func watch() watched {
	w := watched{mark: strconv.FormatUint(pairs.Add(1), 10)}
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(mark, w.mark)))
	return w
}

// left waits until no watched goroutine but the caller's runs code of this module, for d at most, and returns the stacks of those
// that do.
func (w watched) left(d time.Duration) string {
	pprof.SetGoroutineLabels(context.Background())
	for end := time.Now().Add(d); ; {
		s := w.stacks()
		if s == "" || time.Now().After(end) {
			return s
		}
		time.Sleep(time.Millisecond) // there is no event for a goroutine's end
	}
}

func (w watched) stacks() string {
	var b bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
	var left []string
	for _, g := range strings.Split(b.String(), "\n\n") {
		if w.has(g) && strings.Contains(g, "github.com/softrnic/softrnic") {
			left = append(left, g)
		}
	}
	return strings.Join(left, "\n\n")
}

// has reports whether the labels of g are of a watched goroutine.
func (w watched) has(g string) bool {
	labeled := func(key, value string) bool { return strings.Contains(g, fmt.Sprintf("%q:%q", key, value)) }
	return labeled(mark, w.mark) || slices.ContainsFunc(w.nics, func(id string) bool { return labeled(proflabel.RNIC, id) })
}
