package vipl

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	doc "github.com/softrnic/softrnic/internal/test/docgen"
	"github.com/softrnic/softrnic/lab/fault"
)

// planned are fault plans on a stream of VI over TCP: what counts octets, time and connections.
var planned = []string{
	"octet 10 out: cut",
	"octet 2000 out: cut",
	"octet 2000 out: reset",
	"octet 2000 out: half-close",
	"octet 2000 out: stall 50ms",
	"octet 2000 out: delay 50ms",
	"octet every 100: split",
	"octet 2000 out: flip 3 behind crc",
	"time 1s: reset",
	"connection 1: refuse",
}

// faulty is how a client dials with the plan, in a proxy between or around its own connection.
func faulty(t *testing.T, plan string, between bool) func(ctx context.Context, network, address string) (net.Conn, error) {
	in, err := fault.New(fault.MustParse(plan), nil)
	require.NoError(t, err)
	var relays sync.WaitGroup
	t.Cleanup(relays.Wait)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		var d net.Dialer
		server, err := d.DialContext(ctx, network, address)
		if err != nil || !between {
			if err != nil {
				return nil, err
			}
			return in.Conn(server)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		client, err := d.DialContext(ctx, "tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		front, err := l.Accept()
		if err != nil {
			return nil, err
		}
		relays.Go(func() { _ = in.Relay(front, server) }) // its error is the plan's
		return client, nil
	}
}

// suffers has a client send three messages of 1,000 octets to a server, and lists what either sees but success.
func suffers(t *testing.T, plan string, between bool) string {
	a, b := newHost(t, Config{CRC: true, Dial: faulty(t, plan, between)}), newHost(t, Config{CRC: true})
	va, vb := a.vi(ServiceReliableDelivery, nil, nil), b.vi(ServiceReliableDelivery, nil, nil)
	const size = 1000
	var saw []string
	see := func(format string, args ...any) { saw = append(saw, fmt.Sprintf(format, args...)) }
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()

	var recvs []*Descriptor
	for i := range 3 {
		recvs = append(recvs, b.postRecv(vb, b.data(i*size, size)))
	}
	waiting, stop := context.WithCancel(ctx)
	accepted := make(chan error, 1)
	go func() {
		c, err := b.nic.ConnectWait(waiting, b.address("server"))
		if err == nil {
			err = c.ConnectAccept(vb)
		}
		accepted <- err
	}()
	_, err := va.ConnectRequest(ctx, a.address("client"), b.address("server"))
	if err != nil {
		stop()
		require.Error(t, <-accepted, "the server has seen no client")
		return fmt.Sprintf("client: ConnectRequest: %v", ReturnOf(err))
	}
	require.NoError(t, <-accepted)
	stop()
	ends := strings.HasPrefix(plan, "time")
	for i := range 3 {
		copy(a.mem[i*size:], bytes.Repeat([]byte{byte(i + 1)}, size))
		if ends {
			continue
		}
		d := a.desc()
		d.SetSend(a.data(i*size, size))
		if va.PostSend(d, a.dh) != nil {
			break // the VI is in Error by now
		}
	}
	for i, want := range recvs {
		d, err := vb.RecvWait(ctx)
		require.NoError(t, err)
		require.Same(t, want, d)
		if e := d.Control.Status.Errors(); e != 0 {
			ends = true
			see("server: Recv %d: %v", i+1, e)
		} else {
			assert.Equal(t, a.mem[i*size:(i+1)*size], b.mem[i*size:(i+1)*size])
		}
	}
	if ends {
		e := b.waitError()
		see("server: asynchronous error %v", e.ErrorCode)
	}
	if len(saw) == 0 {
		return "nothing but the time"
	}
	return strings.Join(saw, "<br>")
}

// TestFaultPlans: what a fault plan does to VIs, between the two and at the client; docs/lab.md has what is seen.
func TestFaultPlans(t *testing.T) {
	var page strings.Builder
	page.WriteString("\n| plan | what is seen |\n|---|---|\n")
	for _, plan := range planned {
		seen := map[bool]string{}
		for _, between := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%t", plan, between), func(t *testing.T) {
				seen[between] = suffers(t, plan, between)
			})
		}
		assert.Equal(t, seen[true], seen[false])
		fmt.Fprintf(&page, "| `%s` | %s |\n", plan, seen[true])
	}
	require.False(t, t.Failed())
	doc.Generated(t, "../docs/lab.md", "vi-faults", page.String())
}
