package main

import (
	"context"
	"fmt"
	"os"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/interop/internal/docsection"
)

// connections is how often rnic connects to siw's server for each kind of connection. Each
// makes one round.
const connections = 200

// worked counts the connections that worked, for each kind.
type worked struct{ clientServer, p2p int }

func (w worked) all() bool { return w.clientServer == connections && w.p2p == connections }

func (w worked) String() string {
	return fmt.Sprintf("%d of %d connections in client-server mode, %d of %d in peer-to-peer mode",
		w.clientServer, connections, w.p2p, connections)
}

// runFirst connects to the stock driver's server again and again. What rnic sends first comes
// right behind the Reply, where siw may miss it (errStalled). No connection is tried again.
func runFirst(ctx context.Context, opts options) (ok bool, err error) {
	var w worked
	err = withGuest(ctx, opts, "first", "", func(h *harness) error {
		h.rounds = 1
		if err := (pingGuest{h}).start(ctx, conformance.Initiator, 0); err != nil {
			return err
		}
		w.clientServer = h.count(ctx, settings{rev: 2, crc: true})
		w.p2p = h.count(ctx, settings{rev: 2, crc: true, p2p: true})
		return ctx.Err()
	})
	if err != nil {
		return false, err
	}
	fmt.Println(w)
	if opts.doc == "" {
		return w.all(), nil
	}
	versions, err := peerVersions()
	if err != nil {
		return false, err
	}
	return w.all(), docsection.Update(opts.doc, partFirst, w.markdown(versions))
}

// markdown is what docs/interop.md says of w. versions says what was run.
func (w worked) markdown(versions string) string { return fmt.Sprintf("%v. Peer: %s.\n", w, versions) }

// count is how many connections work, of as many as there are to be.
func (h *harness) count(ctx context.Context, s settings) (n int) {
	c := cell{dir: ourClient, settings: s, size: sizes[0]}
	for i := range connections {
		one, cancel := context.WithTimeout(ctx, rpingTime)
		err := h.ping(one, c)
		cancel()
		if err == nil {
			n++
			continue
		}
		fmt.Fprintf(os.Stderr, "%v: connection %d: %v\n", c, i+1, err)
	}
	return n
}
