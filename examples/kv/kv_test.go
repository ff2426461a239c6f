package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

func served(t *testing.T) string {
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return l.Addr().String()
}

func TestPutAndGet(t *testing.T) {
	addr := served(t)
	s, err := dial(t.Context(), addr)
	require.NoError(t, err)
	value, err := s.get(t.Context(), "colour")
	require.NoError(t, err)
	require.Nil(t, value)
	for _, v := range []string{"red", "", "blue"} {
		require.NoError(t, s.put(t.Context(), "colour", []byte(v)))
		value, err = s.get(t.Context(), "colour")
		require.NoError(t, err)
		require.Equal(t, v, string(value))
	}
	require.ErrorContains(t, s.put(t.Context(), "", nil), "a key has 1 to 32 octets")
	require.NoError(t, s.close())
}

// Readers see a value that somebody has put, whole, while it changes all the time.
func TestReadersBesideAWriter(t *testing.T) {
	addr := served(t)
	all, ctx := errgroup.WithContext(t.Context())
	written := make(chan struct{})
	all.Go(func() error {
		defer close(written)
		s, err := dial(ctx, addr)
		if err != nil {
			return err
		}
		for i := range 500 {
			if err := s.put(ctx, "key", fmt.Appendf(nil, "%040d", i)); err != nil {
				return err
			}
		}
		return s.close()
	})
	for range 4 {
		all.Go(func() error {
			s, err := dial(ctx, addr)
			if err != nil {
				return err
			}
			for last, over := -1, false; !over; {
				select {
				case <-written:
					over = true
				default:
				}
				value, err := s.get(ctx, "key")
				if err != nil {
					return err
				}
				now := -1
				if value != nil {
					if _, err := fmt.Sscanf(string(value), "%040d", &now); err != nil {
						return err
					}
				}
				if now < last {
					return fmt.Errorf("%d came after %d", now, last)
				}
				last = now
			}
			return s.close()
		})
	}
	require.NoError(t, all.Wait())
}

// A client that goes away with an answer on its way costs the others nothing: not one place for puts is lost.
func TestClientsThatGo(t *testing.T) {
	addr := served(t)
	for range 2 * puts {
		s, err := dial(t.Context(), addr)
		require.NoError(t, err)
		require.NoError(t, encode(s.slot.Bytes(), "k", []byte("v")))
		_, err = s.qp.PostSend(verbs.Request{SGL: s.slot.SGL(0, slotSize)})
		require.NoError(t, err)
		_, err = s.qp.SendCQ().WaitOne(t.Context())
		require.NoError(t, err)
		_ = s.conn.Abort()
		require.NoError(t, s.nic.Close())
	}
	s, err := dial(t.Context(), addr)
	require.NoError(t, err)
	require.NoError(t, s.put(t.Context(), "last", []byte("one")))
	require.NoError(t, s.close())
}

func TestFull(t *testing.T) {
	table, slot := make([]byte, slots*slotSize), make([]byte, slotSize)
	at := place("0")
	var same []string
	for i := 0; len(same) <= probes; i++ {
		if key := fmt.Sprint(i); place(key) == at {
			same = append(same, key)
		}
	}
	for i, key := range same {
		require.NoError(t, encode(slot, key, nil))
		if err := put(table, slot); i < probes {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "no room")
		}
	}
	require.Error(t, put(table, make([]byte, slotSize)), "no key")
	slot[9] ^= 1
	require.Error(t, put(table, slot), "the checksum is wrong")
}
