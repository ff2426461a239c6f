package qp

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/docgen"
	"github.com/softrnic/softrnic/wr"
)

// goldenReasons are what testdata/reasons.txt has: of each way to a fault the reason with
// every field, the same over every kind of stream. TestEveryFault with -update writes it.
var goldenReasons = sync.OnceValues(func() (map[string]string, error) {
	lines := map[string]string{}
	if *docgen.Update {
		return lines, nil
	}
	raw, err := os.ReadFile(reasonsFile)
	for line := range strings.Lines(string(raw)) {
		name, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		lines[name] = what
	}
	return lines, err
})

const reasonsFile = "testdata/reasons.txt"

// keepReasons writes them, if all subtests have run.
func keepReasons(t *testing.T) {
	if !*docgen.Update || t.Failed() {
		return
	}
	lines, _ := goldenReasons()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(&b, "%s\t%s\n", name, lines[name])
	}
	require.NoError(t, os.WriteFile(reasonsFile, []byte(b.String()), 0o644))
}

// requireReason compares the reason of a session that is over with the golden one of name.
func (r *rig) requireReason(name string) {
	r.t.Helper()
	r.over()
	got := r.reasonLine(r.s.outcome.Why)
	name = r.s.cause.fault.String() + ", " + name
	lines, err := goldenReasons()
	require.NoError(r.t, err)
	if want, ok := lines[name]; ok || !*docgen.Update {
		assert.Equal(r.t, want, got, "the reason")
		return
	}
	lines[name] = got
}

var stags = regexp.MustCompile(`STag 0x[0-9a-f]{8}`)

// reasonLine is all of a reason, with names for the STags, which are drawn at random.
func (r *rig) reasonLine(w *wr.Reason) string {
	if w == nil {
		return "none"
	}
	asked, allowed := w.Asked, w.Allowed
	s := fmt.Sprintf("%v; has STag %t; asked %v; allowed %v; missing %v; MSN %d; by peer %t %v",
		w, w.HasSTag, asked, allowed, w.Missing, w.MSN, w.ByPeer, w.Terminate)
	return stags.ReplaceAllStringFunc(s, func(hex string) string {
		n, _ := strconv.ParseUint(hex[len("STag 0x"):], 16, 32)
		return "STag " + r.stagName(wr.STag(n))
	})
}

func (r *rig) stagName(s wr.STag) string {
	for name, slab := range map[string]*slab{
		"full": r.full, "readable": r.readable, "writable": r.writable, "private": r.private, "foreign": r.foreign,
		"scoped": r.scoped, "pinned": r.pinned, "windowed": r.windowed,
	} {
		switch {
		case slab == nil:
		case slab.stag == s:
			return name
		case slab.stag.Index() == s.Index():
			return name + " with another key"
		}
	}
	switch {
	case s.Index() == r.gone.Index():
		return "gone"
	case s < 1<<16:
		return s.String() // of the peer's
	}
	return "other"
}

// requireWhy checks what every failed completion and every event have.
func (r *rig) requireWhy(list []wr.Completion) {
	r.t.Helper()
	for _, c := range list {
		switch err := c.Err(); c.Status {
		case wr.StatusSuccess:
			require.NoError(r.t, err)
		case wr.StatusFlushed:
			assert.NotErrorAs(r.t, err, new(*wr.Reason), "of another request")
		default:
			var why *wr.Reason
			require.ErrorAs(r.t, err, &why)
			require.NotEmpty(r.t, why.What)
			require.NotEmpty(r.t, why.Rule)
			require.Equal(r.t, c.QP, why.QP)
			require.NotEmpty(r.t, why.Operation, "it is of a request")
			assert.Contains(r.t, err.Error(), why.What)
		}
	}
}

// unexplained are the events that tell of no fault.
var unexplained = []wr.EventID{wr.EventLLPCloseComplete, wr.EventRQLimit}

func (r *rig) requireWhyOf(e wr.Event) {
	r.t.Helper()
	if slices.Contains(unexplained, e.ID) {
		assert.Nil(r.t, e.Why)
		return
	}
	require.NotNil(r.t, e.Why, "%v", e)
	assert.Equal(r.t, e.QP, e.Why.QP)
	assert.NotEmpty(r.t, e.Why.What)
	assert.NotEmpty(r.t, e.Why.Rule)
	assert.Contains(r.t, e.String(), e.Why.What)
}

// TestReasonOfWishes: a program that ends a stream is not told a reason.
func TestReasonOfWishes(t *testing.T) {
	for _, next := range []wr.State{wr.StateClosing, wr.StateTerminate, wr.StateError} {
		r := newRig(t, setup{})
		require.NoError(t, r.q.Modify(Modify{Next: next}))
		_ = r.peer.Close()
		r.over()
		end, over := r.q.LLPStream().End()
		require.True(t, over)
		if next == wr.StateTerminate { // the peer went before it had all
			continue
		}
		assert.Nil(t, end.Why, "%v: %v", next, end.Why)
	}
}

// longestReasons are how long the sentence of a reason may be, without the rule, for the errors that are made of it to fit 200 characters: of
// a fault of this side's requests, which is a completion error; of what the peer did; and of its Terminate. See TestErrorLines of package verbs.
const longestOwn, longestRemote, longestAfar = 162, 169, 180

// TestReasonLines: each reason that the tests know fits a line, with addresses of common length; says nothing twice; and has what decides it last.
func TestReasonLines(t *testing.T) {
	raw, err := os.ReadFile(reasonsFile)
	require.NoError(t, err)
	short := strings.NewReplacer(" on QP 7", "", "at TO 0x0 ", "at TO 0x7f0123456780 ")
	names := regexp.MustCompile(`STag (full|readable|writable|private|foreign|scoped|pinned|windowed|gone|other)( with another key)?`)
	rule := regexp.MustCompile(` \((as )?(RFC|RV-|R\d|verbs draft|draft)[^()]*\)$`)
	address := regexp.MustCompile(`TO 0x[0-9a-f]{4,8}\b`)
	for line := range strings.Lines(string(raw)) {
		name, sentence, _ := strings.Cut(line, "\t")
		sentence, _, _ = strings.Cut(sentence, "; has STag ")
		sentence = address.ReplaceAllString(names.ReplaceAllString(short.Replace(sentence), "STag 0x01234567"), "TO 0x7f0123456780")
		most := longestRemote
		side, _, _ := strings.Cut(name, ":")
		if slices.Contains([]string{"SQ", "RQ", "Bind", "Fast-Register", "Invalidate"}, side) {
			most = longestOwn
		} else if strings.HasPrefix(name, "Terminate ") {
			most = longestAfar
		}
		plain := rule.ReplaceAllString(sentence, "")
		assert.LessOrEqual(t, len(plain), most, "%s: %s", name, plain)
		words := strings.Fields(sentence)
		for i, word := range words[1:] {
			assert.NotEqual(t, words[i], word, "%s: %s", name, sentence)
		}
		assert.NotRegexp(t, `\((as )?(RFC|RV-|verbs draft|draft) `, plain, "%s: the rule comes last", name)
	}
}
