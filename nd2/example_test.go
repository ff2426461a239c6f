package nd2_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"net/netip"

	"github.com/softrnic/softrnic/nd2"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func get[T any](v T, err error) T {
	check(err)
	return v
}

// end is what one program has. Here two are in one, and every error ends it.
type end struct {
	adapter   *nd2.Adapter
	cq        *nd2.CompletionQueue
	qp        *nd2.QueuePair
	region    *nd2.MemoryRegion
	connector *nd2.Connector
	buf       []byte
}

func open(local netip.Addr, flags nd2.MRFlags) *end {
	var provider nd2.Provider
	e := &end{buf: make([]byte, 64)}
	e.adapter = get(provider.OpenAdapter(get(provider.ResolveAddress(local))))
	e.cq = get(e.adapter.CreateCompletionQueue(16))
	e.qp = get(e.adapter.CreateQueuePair(e.cq, e.cq, e, 4, 4, 1, 1, 64))
	e.region = get(e.adapter.CreateMemoryRegion())
	check(e.region.Register(e.buf, flags))
	e.connector = get(e.adapter.CreateConnector())
	return e
}

// list is of one entry: the first n octets of the region.
func (e *end) list(n int) []nd2.SGE {
	return []nd2.SGE{{Buffer: e.buf[:n], MemoryRegionToken: e.region.GetLocalToken()}}
}

// next waits for one result, which has to be a success.
func (e *end) next(ctx context.Context) nd2.Result {
	var r [1]nd2.Result
	for e.cq.GetResults(r[:]) == 0 {
		check(e.cq.Notify(ctx, nd2.CQNotifyAny))
	}
	check(r[0].Err())
	return r[0]
}

// A client sends a ping and gets a pong: the calls of a NetworkDirect program, one by
// one, with Go's contexts where Windows has overlapped operations.
func Example() {
	ctx := context.Background()
	local := netip.MustParseAddr("127.0.0.1")
	server := open(local, nd2.MRFlagAllowLocalWrite)
	defer server.adapter.Close()
	listener := get(server.adapter.CreateListener())
	check(listener.Bind(netip.AddrPortFrom(local, 0)))
	check(listener.Listen(0))
	serving := nd2.Overlap(ctx, func(ctx context.Context) error {
		check(listener.GetConnectionRequest(ctx, server.connector))
		check(server.qp.Receive("ping", server.list(64)))
		check(server.connector.Accept(ctx, server.qp, 0, 0, nil))
		r := server.next(ctx)
		fmt.Printf("%v %v: %s\n", r.RequestType, r.RequestContext, server.buf[:r.BytesTransferred])
		check(server.qp.Send("pong", server.list(copy(server.buf, "pong")), 0))
		server.next(ctx)
		return server.connector.NotifyDisconnect(ctx)
	})

	client := open(local, nd2.MRFlagAllowLocalWrite)
	defer client.adapter.Close()
	check(client.qp.Receive("pong", client.list(64)))
	check(client.connector.Connect(ctx, client.qp, get(listener.GetLocalAddress()), 0, 0, nil))
	check(client.connector.CompleteConnect(ctx))
	check(client.qp.Send("ping", []nd2.SGE{{Buffer: []byte("ping")}}, nd2.OpFlagInline|nd2.OpFlagSilentSuccess))
	r := client.next(ctx)
	fmt.Printf("%v %v: %s\n", r.RequestType, r.RequestContext, client.buf[:r.BytesTransferred])
	check(client.connector.Disconnect(ctx))
	check(serving.GetOverlappedResult(true))
	// Output:
	// Receive ping: ping
	// Receive pong: pong
}

// A server opens eight octets of its memory to a client, tells it where they are, and
// closes them again: then a Read ends the connection.
func ExampleQueuePair_Bind() {
	ctx := context.Background()
	local := netip.MustParseAddr("127.0.0.1")
	server := open(local, nd2.MRFlagAllowLocalWrite)
	defer server.adapter.Close()
	client := open(local, nd2.MRFlagAllowLocalWrite|nd2.MRFlagRDMAReadSink)
	defer client.adapter.Close()
	listener := get(server.adapter.CreateListener())
	check(listener.Bind(netip.AddrPortFrom(local, 0)))
	check(listener.Listen(1))
	accepted := nd2.Overlap(ctx, func(ctx context.Context) error {
		check(listener.GetConnectionRequest(ctx, server.connector))
		return server.connector.Accept(ctx, server.qp, 1, 0, nil)
	})
	check(client.qp.Receive("where", client.list(12)))
	check(client.connector.Connect(ctx, client.qp, get(listener.GetLocalAddress()), 0, 1, nil))
	check(client.connector.CompleteConnect(ctx))
	check(accepted.GetOverlappedResult(true))

	copy(server.buf, "private!PUBLIC..private!")
	window := get(server.adapter.CreateMemoryWindow())
	open := server.buf[8:16]
	check(server.qp.Bind("bind", server.region, window, open, nd2.OpFlagAllowRead))
	where := binary.BigEndian.AppendUint64(nil, nd2.Address(open)) // the token can be had at once
	where = binary.BigEndian.AppendUint32(where, window.GetRemoteToken())
	check(server.qp.Send("where", []nd2.SGE{{Buffer: where}}, nd2.OpFlagInline))
	server.next(ctx)
	server.next(ctx)

	client.next(ctx)
	address, token := binary.BigEndian.Uint64(client.buf), binary.BigEndian.Uint32(client.buf[8:])
	check(client.qp.Read("read", client.list(8), address, token, 0))
	client.next(ctx)
	fmt.Printf("%s\n", client.buf[:8])

	check(server.qp.Invalidate("invalidate", window, 0))
	server.next(ctx)
	check(client.qp.Read("read", client.list(8), address, token, 0))
	var r [1]nd2.Result
	get(client.cq.Wait(ctx, r[:]))
	fmt.Println(r[0].Status, errors.Is(r[0].Err(), nd2.ErrRemoteError))
	// Output:
	// PUBLIC..
	// ND_REMOTE_ERROR true
}
