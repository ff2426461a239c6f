package tap

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/lab/internal/interpose"
	"github.com/softrnic/softrnic/mpa"
)

// TestLostIsSaid: how many records are missing is in the capture.
func TestLostIsSaid(t *testing.T) {
	assert.Equal(t, uint64(7), blocks(t, append(header(false), statistics(time.Now(), 7)...)).lost)
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

// Of a disk that is full all that did not go there whole is lost, while the program runs as at its end; and so is what comes behind Close.
func TestFullDisk(t *testing.T) {
	block := statistics(time.Now(), 0)
	synctest.Test(t, func(t *testing.T) {
		disk := cut(len(header(false)) + 10*len(block) + 5)
		tp := New(&disk, Config{})
		for range 15 {
			tp.record(block)
		}
		synctest.Wait()
		assert.EqualValues(t, 5, tp.Lost())
		tp.record(block)
		assert.EqualValues(t, 6, tp.Lost())
		require.EqualError(t, tp.Close(), "tap: 6 records are missing: disk full")
		tp.record(block)
		assert.EqualValues(t, 7, tp.Lost())
	})
}

// gate writes once it is opened.
type gate struct {
	open chan error
	b    bytes.Buffer
}

func (g *gate) Write(b []byte) (int, error) {
	if err := <-g.open; err != nil {
		return 0, err
	}
	return g.b.Write(b)
}

// A writer that never takes anything does not keep Close: what it has not taken is lost, on its way or queued.
func TestCloseOfWriterThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate{open: make(chan error)}
		tp := New(&g, Config{})
		for range 3 {
			synctest.Wait()
			tp.record(statistics(time.Now(), 0))
		}
		assert.Zero(t, tp.Lost(), "they may come yet")
		require.EqualError(t, tp.Close(), "tap: 4 records are missing: the writer blocks")
		assert.EqualValues(t, 4, tp.Lost())
		g.open <- nil // it takes the beginning after all
		g.open <- errors.New("disk full")
		synctest.Wait()
		assert.EqualValues(t, 3, tp.Lost())
	})
}

// The end of a capture says what a slow writer has lost, though the queue was full to the last.
func TestFullQueueIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate{open: make(chan error)}
		tp := New(&g, Config{})
		synctest.Wait() // the beginning is on its way
		for range maxRecords + 7 {
			tp.record(statistics(time.Now(), 0))
		}
		assert.EqualValues(t, 7, tp.Lost())
		closed := make(chan error)
		go func() { closed <- tp.Close() }()
		synctest.Wait()
		close(g.open)
		require.EqualError(t, <-closed, "tap: 7 records are missing: the writer was too slow")
		assert.EqualValues(t, 7, blocks(t, g.b.Bytes()).lost)
	})
}

// TestEarlyIsBounded: through a proxy, an Initiator that sends on and on without a Reply is no iWARP.
func TestEarlyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tp := New(&bytes.Buffer{}, Config{})
		client, server := net.Pipe()
		st := tp.between(client, server)
		req, err := (&mpa.Startup{Rev: 1, CRC: true}).Append(nil)
		require.NoError(t, err)
		st.Carry(1, req)
		seq := st.dirs[1].seq
		for range interpose.MaxEarly / 1024 {
			st.Carry(1, make([]byte, 1024))
		}
		require.Equal(t, seq, st.dirs[1].seq, "it waits for the Reply")
		st.Carry(1, make([]byte, 1024))
		assert.EqualValues(t, interpose.MaxEarly+1024, st.dirs[1].seq-seq)
		require.NoError(t, tp.Close())
	})
}
