package inventory

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// box is an object that holds places.
type box struct{ places int }

func (b *box) Count(tell Tell) { tell(b.places, "place") }

const patience = 10 * time.Second

func TestNobodyKeepsIt(t *testing.T) {
	o := Open(nil, "box", 1, &box{})
	assert.Nil(t, o)
	o.Close()
	assert.Nil(t, Open(o, "lid", nil, &box{}))
}

func TestLeft(t *testing.T) {
	defer Keep()()
	c := Take()
	b := &box{places: 2}
	o := Open(nil, "box", 1, b)
	lid := Open(o, "lid", nil, &box{places: -1})
	assert.Equal(t, []string{"box 1: not closed"}, c.Left(), "that the lid is not closed goes without saying")
	assert.Equal(t, 2, Totals()["box: place"])
	assert.Equal(t, 1, Totals()["box"])
	lid.Close()
	assert.Contains(t, c.Left(), "lid of box 1: -1 places (given back too often)")
	o.Close()
	assert.Contains(t, c.Left(), "box 1: 2 places")
	assert.Zero(t, Totals()["box"])
	b.places = 0
	lid.counter.(*box).places = 1
	assert.Equal(t, []string{"lid of box 1: 1 place"}, c.Left())
	b.places = 1
	assert.Equal(t, []string{"lid of box 1: 1 place"}, c.Left(), "the box has left the inventory")
	lid.counter.(*box).places = 0
	assert.Empty(t, c.Left())
}

func TestPlural(t *testing.T) {
	assert.Equal(t, "users of PD 3", plural("user of PD 3"))
	assert.Equal(t, "STag entries", plural("STag entry"))
	assert.Equal(t, "requests without an answer", plural("request without an answer"))
}

func TestFolder(t *testing.T) {
	defer Keep()()
	c := Take()
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.Mkdir(path, 0o700))
	o := Folder(path)
	assert.Equal(t, []string{"temporary folder " + path + ": not closed"}, c.Left())
	o.Close()
	assert.Equal(t, []string{"temporary folder " + path + ": 1 folder on the disk"}, c.Left())
	require.NoError(t, os.Remove(path))
	assert.Empty(t, c.Left())
}

// What two scopes side by side leave is told of the one that has left it, whichever goroutine of it did.
func TestScopes(t *testing.T) {
	defer Keep()()
	var begun, over sync.WaitGroup
	begun.Add(2)
	release := make(chan struct{})
	told := make([][]string, 2)
	var ends []func()
	var mu sync.Mutex
	for i := range 2 {
		over.Go(func() {
			s := Begin()
			mu.Lock()
			ends = append(ends, s.End)
			mu.Unlock()
			begun.Done()
			begun.Wait()
			var deep sync.WaitGroup
			deep.Go(func() {
				var deeper sync.WaitGroup
				deeper.Go(func() { Open(nil, "box", i, &box{}) })
				deeper.Wait()
			})
			deep.Wait()
			go func() { <-release }()
			told[i] = s.Wait(0)
		})
	}
	over.Wait()
	for i, lines := range told {
		require.Len(t, lines, 2, "%v", lines)
		assert.Equal(t, "box "+string(rune('0'+i))+": not closed", lines[0])
		assert.Contains(t, lines[1], "TestScopes")
	}
	close(release)
	for _, end := range ends {
		end()
	}
	assert.Empty(t, Totals()["box"])
}

func TestAlone(t *testing.T) {
	defer Keep()()
	outer := Open(nil, "box", "around", &box{})
	defer outer.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s := Begin()
		defer s.End()
		assert.True(t, s.Alone())
		assert.Empty(t, s.Wait(patience))
		release, gone := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(gone)
			<-release
		}()
		file, err := os.Open(os.DevNull)
		assert.NoError(t, err)
		left := strings.Join(s.Wait(0), "\n")
		assert.Contains(t, left, "goroutine left behind:\ngoroutine ")
		assert.Equal(t, runtime.GOOS == "linux", strings.Contains(left, "left open: "+os.DevNull), left)
		close(release)
		<-gone
		assert.NoError(t, file.Close())
		assert.Empty(t, s.Wait(patience))

		other := make(chan struct{})
		go func() {
			defer close(other)
			Begin().End()
		}()
		<-other
		assert.False(t, s.Alone(), "there was another meanwhile")
	}()
	<-ended
}
