// Command copy sends a file over TLS with RDMA Writes: the receiving program's memory is where the octets arrive, and a message
// says that they are there.
//
//	copy receive ADDR DIR CERT KEY
//	copy send FILE ADDR CA
//
// The receiver has a few blocks of memory. It tells the sender where they are, the sender writes into one and says how much, and
// the receiver gives the block back when the file has it. That is all the flow control there is.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"os/signal"

	"github.com/softrnic/softrnic/cm"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "copy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 5 && args[0] == "receive":
		cert, err := tls.LoadX509KeyPair(args[3], args[4])
		if err != nil {
			return err
		}
		tl, err := tls.Listen("tcp", args[1], &tls.Config{Certificates: []tls.Certificate{cert}})
		if err != nil {
			return err
		}
		dir, err := os.OpenRoot(args[2])
		if err != nil {
			return err
		}
		defer dir.Close()
		fmt.Println("receiving at", tl.Addr())
		return receiveAll(ctx, cm.NewListener(tl, cm.ListenConfig{}), dir)
	case len(args) == 4 && args[0] == "send":
		pem, err := os.ReadFile(args[3])
		if err != nil {
			return err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		d := tls.Dialer{Config: &tls.Config{RootCAs: roots}}
		nc, err := d.DialContext(ctx, "tcp", args[2])
		if err != nil {
			return err
		}
		return send(ctx, args[1], nc)
	}
	return fmt.Errorf("usage: copy receive ADDR DIR CERT KEY | copy send FILE ADDR CA")
}
