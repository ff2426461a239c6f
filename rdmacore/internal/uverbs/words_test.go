//go:build linux && (amd64 || arm64)

package uverbs

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// goWords are words that nobody writes who knows libibverbs alone.
var goWords = regexp.MustCompile(`\b(STags?|S-RQs?|RNICs?|TO|ORD|IRD|LLP|Idle)\b`)

// inGo reports whether a sentence has a word of Go's API, or of the RFCs, that libibverbs has another for.
func inGo(s string) bool { return ofGo(s) || goWords.MatchString(s) }

// Sentences that no C program can meet: the device asks for no such thing, or has refused it itself before.
var unmet = []string{
	"CreateEndpoint", "Pages", "NotifyNext", "ModifyQP.", "Config.ID", "Existing", "verbs.",
	"Request.Atomic", "NoBind", "QPConfig.Privileged", "AllocateRegion", "AllocateConfig", "AddCompletionHandler", "LocalRead", "PageMode", "PBL",
}

// TestWordsOfEveryReason walks all sentences in the source of what gives reasons.
func TestWordsOfEveryReason(t *testing.T) {
	n := 0
	for _, dir := range []string{"qp", "stag", "srq", "wr", "verbs", "internal/cq", "internal/sglcheck"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", "..", "..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, s := range reasonTexts(t, path) {
				n++
				if s.remedy {
					got := remedy(s.text)
					assert.False(t, inGo(got), "%s: %q", path, got)
					if got == "" && s.text != "" && !contains(unmet, s.text) {
						t.Errorf("%s: nothing is left of %q", path, s.text)
					}
					continue
				}
				if got := text(s.text); inGo(got) && !contains(unmet, s.text) {
					t.Errorf("%s: %q of %q", path, got, s.text)
				}
			}
			return nil
		}))
	}
	assert.Greater(t, n, 200)
	for e := verbs.ImmediateError(1); !strings.Contains(e.Error(), fmt.Sprint(int(e))); e++ {
		assert.False(t, inGo(text(e.Error())), "%v", text(e.Error()))
	}
	for s := verbs.Status(0); !strings.Contains(s.String(), fmt.Sprint(int(s))); s++ {
		assert.False(t, inGo(text(s.String())), "%v", text(s.String()))
	}
	for e := verbs.EventID(1); !strings.Contains(e.String(), fmt.Sprint(int(e))); e++ {
		assert.False(t, inGo(text(e.String())), "%v", text(e.String()))
	}
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if strings.Contains(s, l) {
			return true
		}
	}
	return false
}

type reasonText struct {
	text   string
	remedy bool
}

// reasonTexts are what a file gives the fields What and Remedy, and the tables of remedies.
func reasonTexts(t *testing.T, path string) (all []reasonText) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	add := func(field string, e ast.Expr) {
		if field != "What" && field != "Remedy" && !strings.HasPrefix(strings.ToLower(field), "remed") {
			return
		}
		ast.Inspect(e, func(n ast.Node) bool {
			if b, ok := n.(*ast.BasicLit); ok && b.Kind == token.STRING {
				if s, err := strconv.Unquote(b.Value); err == nil {
					all = append(all, reasonText{s, field != "What"})
				}
			}
			return true
		})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if name, ok := n.Key.(*ast.Ident); ok {
				add(name.Name, n.Value)
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					add(name.Name, n.Values[i])
				}
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if of, ok := to.(*ast.SelectorExpr); ok && i < len(n.Rhs) && len(n.Lhs) == len(n.Rhs) {
					add(of.Sel.Name, n.Rhs[i])
				}
			}
		}
		return true
	})
	return all
}

// TestWords: whole sentences.
func TestWords(t *testing.T) {
	afar := verbs.Reason{
		Operation: "RDMA Write", STag: 0x38e20a07, HasSTag: true, Asked: verbs.Octets{Known: true, Tagged: true, TO: 0x1000, Length: 8}, ByPeer: true,
		What: "the peer says 0x1100 (DDP invalid STag)", Remedy: "write to memory that is still registered there with RemoteWrite", Rule: "RFC 5040 4.8",
	}
	local := verbs.Reason{
		Operation: "RDMA Write", QP: 0xa20b01, STag: 7, HasSTag: true, Asked: verbs.Octets{Known: true, Tagged: true, TO: 0x1000, Length: 8},
		What: "no region or window has this STag", Rule: "RV-7.2.2-M1",
	}
	for want, got := range map[string]string{
		"RDMA Write of 8 octets at address 0x1000 of rkey 0x38e20a07 refused: the peer says 0x1100 (DDP invalid rkey): " +
			"write to memory that is still registered there with IBV_ACCESS_REMOTE_WRITE": words(&afar, "lkey"),
		"RDMA Write of 8 octets at address 0x1000 of lkey 0x7 on queue pair 0xa20b01 refused: no region or window has this lkey (RV-7.2.2-M1)": words(&local, "lkey"),
		"ibv_modify_qp from RESET to Closing on queue pair 0x10 refused: QP in use":                                                            words(&verbs.Reason{Operation: "Modify QP from Idle to Closing", QP: 16, Err: errors.New("QP in use")}, "lkey"),
		"use fewer, or create the queue with more (max_send_sge, max_recv_sge, max_sge)":                                                       remedy("use fewer, or create the queue with more (SendSGE, WriteSGE, RecvSGE, SRQConfig.SGE)"),
		"name octets of the region, of 4 GiB - 1 at most in one element":                                                                       remedy("name octets of the region, of 4 GiB - 1 at most in one element"),
		"post earlier": remedy("post earlier, or set QPConfig.GracefulReceive"),
		"the stream ended: " + words(&local, "lkey"):       Words(fmt.Errorf("the stream ended: %w", &local)),
		"Terminate Message Received (queue pair 0xa20b00)": text("Terminate Message Received (QP 10619648)"),
		"connection refused":                               Words(errors.New("connection refused")),
	} {
		assert.Equal(t, want, got)
	}
}
