package uppertester

import (
	"context"
	"fmt"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"sync"
)

// service is the name of a Service in JSON-RPC.
const service = "Upper"

// Serve is an upper tester for Remote: each connection to l gets a Service of its
// own, which ends with the connection. It does what it is told by anybody who
// connects: listen where nobody else is. It returns when ctx is done, nil then, or
// when l fails.
func Serve(ctx context.Context, l net.Listener) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("uppertester: %w", err)
		}
		wg.Go(func() { serveOne(ctx, c) })
	}
}

func serveOne(ctx context.Context, c net.Conn) {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	defer func() { _ = c.Close() }()
	host, _, err := net.SplitHostPort(c.LocalAddr().String())
	if err != nil {
		return
	}
	s, err := New(host)
	if err != nil {
		return
	}
	server := rpc.NewServer()
	if err := server.RegisterName(service, &Served{s}); err != nil {
		_ = s.Close()
		return
	}
	// The codec ends a Service's waits as soon as the connection is gone, so that
	// ServeCodec, which waits for the calls, comes back.
	server.ServeCodec(&closingCodec{jsonrpc.NewServerCodec(c), s.cancel})
	_ = s.Close()
}

// closingCodec tells when nothing more comes.
type closingCodec struct {
	rpc.ServerCodec
	closed func()
}

func (c *closingCodec) ReadRequestHeader(r *rpc.Request) error {
	err := c.ServerCodec.ReadRequestHeader(r)
	if err != nil {
		c.closed()
	}
	return err
}
