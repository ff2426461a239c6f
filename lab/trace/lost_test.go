package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	line, err := json.Marshal(lineOf(&Record{Kind: Sent}))
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

// slow writes at each signal.
type slow struct {
	once chan struct{}
	b    bytes.Buffer
}

func (s *slow) Write(b []byte) (int, error) {
	<-s.once
	return s.b.Write(b)
}

// Where records are missing the file says so, and how many: between others, and at its end.
func TestGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := slow{once: make(chan struct{})}
		w := NewWriter(&file)
		fill := func(missing int) {
			w.Add(Record{Kind: Sent, ID: 1})
			synctest.Wait() // it is being written
			for range queued + missing {
				w.Add(Record{Kind: Sent, ID: 1})
			}
		}
		fill(7)
		require.EqualValues(t, 7, w.Lost())
		for range 2 { // the first, and a buffer of those queued: the rest is under way
			file.once <- struct{}{}
			synctest.Wait()
		}
		w.Add(Record{Kind: Sent, ID: 2, Time: 5})
		for range queued + 3 {
			w.Add(Record{Kind: Sent, ID: 3})
		}
		lost := w.Lost()
		require.Greater(t, lost, uint64(7))
		closed := make(chan error)
		go func() { closed <- w.Close() }()
		synctest.Wait()
		close(file.once)
		require.ErrorContains(t, <-closed, fmt.Sprintf("trace: %d records were lost", lost))
		got, err := Read(&file.b)
		require.NoError(t, err)
		var gaps []int
		for i, r := range got {
			if r.Kind == Lost {
				gaps = append(gaps, i)
			}
		}
		require.Len(t, gaps, 2)
		require.Equal(t, queued+1, gaps[0])
		require.Equal(t, Record{Kind: Lost, Time: 5, Name: "7 records, which came faster than they were written"}, got[gaps[0]])
		require.EqualValues(t, 2, got[gaps[0]+1].ID)
		require.Equal(t, len(got)-1, gaps[1])
		require.Equal(t, fmt.Sprintf("%d records, which came faster than they were written", lost-7), got[gaps[1]].Name)
		require.EqualValues(t, 2*queued+12-int(lost), len(got)-2)
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
