package vipl

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestConnectWaitFrom: a wait singles out a remote VI by its host and its discriminator
// (VA-4.1-S1, VA-4.3-M4); requests of others stay for other waits.
func TestConnectWaitFrom(t *testing.T) {
	server := newHost(t, Config{MatchTimeout: time.Minute})
	here, elsewhere := netip.MustParseAddrPort("127.0.0.1:7"), netip.MustParseAddrPort("192.0.2.1:0")
	var refused []chan error
	call := func(from string) {
		c := newHost(t, Config{})
		done := make(chan error, 1)
		refused = append(refused, done)
		go func() {
			_, err := c.vi(ServiceReliableDelivery, nil, nil).ConnectRequest(within(t), c.address(from), server.address("server"))
			done <- err
		}()
	}
	wait := func(remote *NetAddress) string {
		c, err := server.nic.ConnectWaitFrom(within(t), server.address("server"), remote)
		require.NoError(t, err)
		require.NoError(t, c.ConnectReject())
		return string(c.RemoteAddr().Discriminator)
	}
	for _, name := range []string{"one", "", "two", "three", "four"} {
		call(name)
	}
	require.Equal(t, "two", wait(&NetAddress{Discriminator: []byte("two")}))
	require.Equal(t, "three", wait(NewNetAddress(here, []byte("three"))))
	require.Empty(t, wait(NewNetAddress(here, []byte{})), "the empty discriminator is one of them")
	left := []string{wait(NewNetAddress(here, nil)), wait(nil)}
	require.ElementsMatch(t, []string{"one", "four"}, left)
	for _, done := range refused {
		require.ErrorIs(t, <-done, ErrReject)
	}

	call("one")
	ctx, cancel := context.WithCancelCause(t.Context())
	missed := make(chan error, 2)
	for _, remote := range []*NetAddress{NewNetAddress(elsewhere, []byte("one")), {Discriminator: []byte("two")}} {
		go func() {
			_, err := server.nic.ConnectWaitFrom(ctx, server.address("server"), remote)
			missed <- err
		}()
	}
	require.Equal(t, "one", wait(nil), "the waits for others do not take it")
	cancel(errors.New("enough"))
	for range 2 {
		require.ErrorIs(t, <-missed, context.Canceled)
	}
	for _, bad := range []*NetAddress{{HostAddress: []byte{1}}, {Discriminator: make([]byte, MaxDiscriminator+1)}} {
		_, err := server.nic.ConnectWaitFrom(within(t), server.address("server"), bad)
		require.ErrorIs(t, err, ErrInvalidParameter)
	}
}
