// Command grpc is gRPC-Go's interop server and client, as google.golang.org/grpc/interop has them, over package ulp/rsocket: the listener is
// rsocket.Listen's, the dialer rsocket.Config's, and the rest is theirs. A module of its own keeps gRPC out of what the library depends on.
//
//	grpc cases              prints the names of the test cases
//	grpc serve              prints the address of a plain and of a TLS listener, and serves until its input ends
//	grpc run CASE ADDRESS   runs a case over a plain connection, and CASE tls ADDRESS over TLS; exits as their client does
//
// The cases are those of gRPC-Go's interop_test.sh without orca_oob, whose server needs an internal package of gRPC-Go's.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/orca"
	"google.golang.org/grpc/testdata"

	"github.com/softrnic/softrnic/ulp/rsocket"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "grpc:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "cases":
		for _, c := range cases {
			fmt.Println(c.name)
		}
		return nil
	case len(args) == 1 && args[0] == "serve":
		return serve()
	case len(args) == 3 && args[0] == "run":
		return client(args[1], args[2], insecure.NewCredentials())
	case len(args) == 4 && args[0] == "run" && args[2] == "tls":
		creds, err := credentials.NewClientTLSFromFile(testdata.Path("ca.pem"), "foo.test.google.fr")
		if err != nil {
			return err
		}
		return client(args[1], args[3], creds)
	}
	return errors.New("want cases, serve, or run CASE [tls] ADDRESS")
}

// serve is their interop server, once for each kind of connection.
func serve() error {
	creds, err := credentials.NewServerTLSFromFile(testdata.Path("server1.pem"), testdata.Path("server1.key"))
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	for _, o := range [][]grpc.ServerOption{nil, {grpc.Creds(creds)}} {
		l, err := rsocket.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		server := grpc.NewServer(append(o, orca.CallMetricsServerOption(nil))...)
		metrics := orca.NewServerMetricsRecorder()
		if err := orca.Register(server, orca.ServiceOptions{ServerMetricsProvider: metrics}); err != nil {
			return err
		}
		testgrpc.RegisterTestServiceServer(server, interop.NewTestServer(interop.NewTestServerOptions{MetricsRecorder: metrics}))
		go func() { failed <- server.Serve(l) }()
		defer server.Stop()
		fmt.Println(l.Addr())
	}
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		failed <- err
	}()
	return <-failed
}

// options are those of their client, and the dialer.
func options(creds credentials.TransportCredentials) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return rsocket.Config{}.DialContext(ctx, "tcp", address)
		}),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"test_backend_metrics_load_balancer": {}}]}`),
	}
}

// client runs a case. One that fails ends the process.
func client(name, address string, creds credentials.TransportCredentials) error {
	i := slices.IndexFunc(cases, func(c testCase) bool { return c.name == name })
	if i < 0 {
		return fmt.Errorf("no case %q", name)
	}
	dial := func() (*grpc.ClientConn, error) { return grpc.NewClient("passthrough:///"+address, options(creds)...) }
	cc, err := dial()
	if err != nil {
		return err
	}
	cases[i].do(context.Background(), cc, dial)
	return cc.Close()
}

type testCase struct {
	name string
	do   func(ctx context.Context, cc *grpc.ClientConn, dial func() (*grpc.ClientConn, error))
}

var cases = []testCase{
	call("empty_unary", interop.DoEmptyUnaryCall),
	call("large_unary", interop.DoLargeUnaryCall),
	call("client_streaming", interop.DoClientStreaming),
	call("server_streaming", interop.DoServerStreaming),
	call("ping_pong", interop.DoPingPong),
	call("empty_stream", interop.DoEmptyStream),
	call("timeout_on_sleeping_server", interop.DoTimeoutOnSleepingServer),
	call("cancel_after_begin", interop.DoCancelAfterBegin),
	call("cancel_after_first_response", interop.DoCancelAfterFirstResponse),
	call("status_code_and_message", interop.DoStatusCodeAndMessage),
	call("special_status_message", interop.DoSpecialStatusMessage),
	call("custom_metadata", interop.DoCustomMetadata),
	{"unimplemented_method", func(ctx context.Context, cc *grpc.ClientConn, _ func() (*grpc.ClientConn, error)) {
		interop.DoUnimplementedMethod(ctx, cc)
	}},
	{"unimplemented_service", func(ctx context.Context, cc *grpc.ClientConn, _ func() (*grpc.ClientConn, error)) {
		interop.DoUnimplementedService(ctx, testgrpc.NewUnimplementedServiceClient(cc))
	}},
	{"orca_per_rpc", func(ctx context.Context, cc *grpc.ClientConn, _ func() (*grpc.ClientConn, error)) {
		interop.DoORCAPerRPCTest(ctx, testgrpc.NewTestServiceClient(cc))
	}},
	{"rpc_soak", func(ctx context.Context, cc *grpc.ClientConn, _ func() (*grpc.ClientConn, error)) {
		soak(ctx, func() (*grpc.ClientConn, func()) { return cc, func() {} })
	}},
	{"channel_soak", func(ctx context.Context, _ *grpc.ClientConn, dial func() (*grpc.ClientConn, error)) {
		soak(ctx, func() (*grpc.ClientConn, func()) {
			cc, err := dial()
			if err != nil {
				panic(err)
			}
			return cc, func() { _ = cc.Close() }
		})
	}},
}

func call(name string, do func(context.Context, testgrpc.TestServiceClient, ...grpc.CallOption)) testCase {
	return testCase{name, func(ctx context.Context, cc *grpc.ClientConn, _ func() (*grpc.ClientConn, error)) {
		do(ctx, testgrpc.NewTestServiceClient(cc))
	}}
}

// soak is large_unary a hundred times, in four goroutines.
func soak(ctx context.Context, channel func() (*grpc.ClientConn, func())) {
	interop.DoSoakTest(ctx, interop.SoakTestConfig{
		RequestSize: 271828, ResponseSize: 314159, NumWorkers: 4, Iterations: 100,
		PerIterationMaxAcceptableLatency: time.Minute, OverallTimeout: time.Minute, ChannelForTest: channel,
	})
}
