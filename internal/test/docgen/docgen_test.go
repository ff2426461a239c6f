package docgen

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// failing is a test that is to fail.
type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Helper() {}

func (f *failing) Fatal(...any) { f.Fatalf("") }

func (f *failing) Fatalf(string, ...any) {
	f.failed = true
	runtime.Goexit()
}

// fails reports whether a page is refused.
func fails(t *testing.T, file, want string) bool {
	f := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Generated(f, file, "x", want)
	}()
	<-done
	return f.failed
}

func TestGenerated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	require.True(t, fails(t, file, ""), "no page")
	write("a\n<!-- x:begin -->\none\ntwo\n<!-- x:end -->\nb\n")
	require.False(t, fails(t, file, "one\ntwo\n"))
	for _, stale := range []string{"", "one\n", "one\nthree\n", "one\ntwo\nthree\n"} {
		require.True(t, fails(t, file, stale), "%q", stale)
	}
	*Update = true
	defer func() { *Update = false }()
	require.False(t, fails(t, file, "three\n"))
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "a\n<!-- x:begin -->\nthree\n<!-- x:end -->\nb\n", string(raw))
	for _, marks := range []string{"", "<!-- x:begin -->\n", "<!-- x:end -->\n", "<!-- y:begin -->\n<!-- x:end -->"} {
		write(marks)
		require.True(t, fails(t, file, ""), "%q", marks)
	}
}
