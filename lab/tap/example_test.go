package tap_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/lab/tap"
	"github.com/softrnic/softrnic/verbs"
)

// What goes over the streams of an RNIC, for rnic dump and Wireshark: Requests, Replies and FPDUs, with the
// program's octets as zeros.
func ExampleCreate() {
	dir, err := os.MkdirTemp("", "tap")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	t, err := tap.Create(filepath.Join(dir, "streams.pcapng"), tap.Config{})
	if err != nil {
		log.Fatal(err)
	}
	nic, err := verbs.Open(verbs.Config{Tap: t})
	if err != nil {
		log.Fatal(err)
	}
	connectAndClose(nic)
	if err := nic.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(t.Close(), t.Lost())
	// Output: <nil> 0
}

// connectAndClose connects two queue pairs of nic over a pipe.
func connectAndClose(nic *verbs.RNIC) {
	ctx := context.Background()
	a, b := net.Pipe()
	initiator := connect(nic, func(qp *verbs.QP) (*cm.Conn, error) { return cm.Connect(ctx, a, qp, cm.Config{}) })
	responder := connect(nic, func(qp *verbs.QP) (*cm.Conn, error) {
		r, err := cm.Await(ctx, b, cm.Config{})
		if err != nil {
			return nil, err
		}
		return r.Accept(ctx, qp, cm.Config{})
	})
	for _, conn := range []*cm.Conn{<-initiator, <-responder} {
		if err := conn.Close(); err != nil {
			log.Fatal(err)
		}
	}
}

func connect(nic *verbs.RNIC, by func(*verbs.QP) (*cm.Conn, error)) <-chan *cm.Conn {
	connected := make(chan *cm.Conn, 1)
	go func() {
		qp, err := nic.CreateEndpoint(verbs.QPConfig{})
		if err != nil {
			log.Fatal(err)
		}
		conn, err := by(qp)
		if err != nil {
			log.Fatal(err)
		}
		connected <- conn
	}()
	return connected
}
