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
