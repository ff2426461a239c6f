package rsocket_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"

	"github.com/softrnic/softrnic/ulp/rsocket"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A server that sends back what it gets, and a client: both use what a net.Conn has.
func Example() {
	l, err := rsocket.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		defer c.Close()
		_, _ = io.Copy(c, c)
	}()

	c, err := rsocket.Dial("tcp", l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("there and back")); err != nil {
		log.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil { // so that the server's io.Copy ends
		log.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(got))
	// Output:
	// there and back
}

// net/http over RDMA: the server gets a Listener, and the client a DialContext.
func ExampleConfig_DialContext() {
	l, err := rsocket.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello", r.URL.Path)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()

	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return rsocket.Config{}.DialContext(ctx, network, address)
	}}
	client := http.Client{Transport: transport}
	r, err := client.Get("http://" + l.Addr().String() + "/rdma")
	if err != nil {
		log.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		log.Fatal(err)
	}
	_ = r.Body.Close()
	fmt.Printf("%s", body)
	transport.CloseIdleConnections()
	_ = server.Close()
	fmt.Println(<-served)
	// Output:
	// hello /rdma
	// http: Server closed
}

// A server lets its client write into a buffer by itself. What the client writes to the connection behind it arrives later, so that a
// message tells that the buffer is full.
func ExampleConn_WriteAt() {
	l, err := rsocket.Listen("tcp", "127.0.0.1:0")
	check(err)
	defer l.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		c, err := l.Accept()
		check(err)
		page := make([]byte, 64)
		check(c.(*rsocket.Conn).Map(page, 0))
		_, err = c.Write([]byte{1}) // it is mapped
		check(err)
		n := make([]byte, 1)
		_, err = io.ReadFull(c, n)
		check(err)
		fmt.Printf("%s\n", page[32:32+n[0]])
		check(c.Close())
	}()

	c, err := rsocket.Config{Mapped: 1}.DialContext(context.Background(), "tcp", l.Addr().String())
	check(err)
	_, err = io.ReadFull(c, make([]byte, 1))
	check(err)
	n, err := c.(*rsocket.Conn).WriteAt([]byte("written at 32"), 32)
	check(err)
	_, err = c.Write([]byte{byte(n)})
	check(err)
	<-served
	check(c.Close())
	// Output: written at 32
}
