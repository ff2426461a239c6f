package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// What is added behind Close is lost, and counted, as is what a file that fails had been given.
func TestLost(t *testing.T) {
	var text bytes.Buffer
	w := NewWriter(&text)
	w.Add(Record{Kind: Sent})
	require.NoError(t, w.Close())
	require.Zero(t, w.Lost())
	for range 3 {
		w.Add(Record{Kind: Sent})
	}
	require.EqualValues(t, 3, w.Lost())
	require.NoError(t, w.Close())
	got, err := Read(&text)
	require.NoError(t, err)
	require.Len(t, got, 1)
}

// cut takes so many octets, and is full then.
type cut int

func (c *cut) Write(b []byte) (int, error) {
	n := min(len(b), int(*c))
	*c -= cut(n)
	if n < len(b) {
		return n, errors.New("disk full")
	}
	return n, nil
}

// Of a disk that is full all that did not go there whole is lost, while the program runs as at its end.
func TestFullDisk(t *testing.T) {
	line, err := json.Marshal(Record{Kind: Sent})
	require.NoError(t, err)
	disk := cut(10*(len(line)+1) + 5)
	synctest.Test(t, func(t *testing.T) {
		w := NewWriter(&disk)
		for range 15 {
			w.Add(Record{Kind: Sent})
		}
		synctest.Wait()
		require.EqualValues(t, 5, w.Lost())
		w.Add(Record{Kind: Sent})
		synctest.Wait()
		require.EqualValues(t, 6, w.Lost())
		require.ErrorContains(t, w.Close(), "disk full\ntrace: 6 records were lost")
	})
}

// short takes all but one octet, and says nothing of it.
type short struct{}

func (short) Write(b []byte) (int, error) { return len(b) - 1, nil }

func TestShortWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWriter(short{})
		w.Add(Record{Kind: Sent})
		synctest.Wait()
		w.Add(Record{Kind: Sent})
		synctest.Wait()
		require.EqualValues(t, 2, w.Lost())
		require.ErrorIs(t, w.Close(), io.ErrShortWrite)
	})
}

// A file that never takes anything does not keep Close: what it has not taken is lost.
func TestCloseOfFileThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := make(blocked)
		w := NewWriter(b)
		for range 3 {
			w.Add(Record{Kind: Sent})
			synctest.Wait()
		}
		require.EqualError(t, w.Close(), "trace: the file takes nothing more\ntrace: 3 records were lost")
		require.EqualValues(t, 3, w.Lost())
		b <- nil // it takes the first after all
		b <- errors.New("disk full")
		synctest.Wait()
		require.EqualValues(t, 2, w.Lost())
	})
}

// Many that add while it is closed: each record is written, or counted.
func TestCloseWhileAdding(t *testing.T) {
	var text bytes.Buffer
	w := NewWriter(&text)
	var adders sync.WaitGroup
	const each = 1000
	started := make(chan struct{}, 4)
	for range 4 {
		adders.Go(func() {
			for i := range each {
				w.Add(Record{Kind: Sent})
				if i == each/2 {
					started <- struct{}{}
				}
			}
		})
	}
	<-started
	_ = w.Close()
	adders.Wait()
	got, err := Read(&text)
	require.NoError(t, err)
	require.EqualValues(t, 4*each, uint64(len(got))+w.Lost())
}

// A file that was there with other rights is its owner's alone from then on.
func TestRightsOfFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t")
	for _, open := range []func(string) (*Writer, error){Create, Append} {
		require.NoError(t, os.WriteFile(path, nil, 0o644)) //nolint:gosec // on purpose
		require.NoError(t, os.Chmod(path, 0o644))          //nolint:gosec // likewise
		w, err := open(path)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		st, err := os.Stat(path)
		require.NoError(t, err)
		require.EqualValues(t, 0o600, st.Mode().Perm())
	}
}
