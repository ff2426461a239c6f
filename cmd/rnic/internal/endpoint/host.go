package endpoint

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// IdleLimit is how long a client may do nothing, unless the user of a server says otherwise.
const IdleLimit = time.Minute

// Host is the RNIC of a server, and the budget of all its clients together.
type Host struct {
	NIC  *verbs.RNIC
	Idle time.Duration // how long a client may do nothing

	mostClients int
	mostMemory  uint64 // octets

	mu      sync.Mutex
	clients int    // guarded by mu
	memory  uint64 // guarded by mu
}

// OpenHost opens an RNIC, as c says, for so many clients, with so many octets of memory for all of them, each of which
// may do nothing for idle; 0 stands for IdleLimit.
func OpenHost(c verbs.Config, clients int, memory uint64, idle time.Duration) (*Host, error) {
	nic, err := verbs.Open(c)
	if err != nil {
		return nil, fmt.Errorf("opening the RNIC: %w", err)
	}
	return &Host{NIC: nic, Idle: cmp.Or(idle, IdleLimit), mostClients: clients, mostMemory: memory}, nil
}

// Close closes the RNIC.
func (h *Host) Close() error { return h.NIC.Close() }

// Admit reserves a place for a client and the memory that it needs, in octets, until leave is called. An error names
// the scarce resource, in words for the client.
func (h *Host) Admit(memory uint64) (leave func(), err error) { return h.take(1, memory) }

// Reserve is Admit of more memory for an admitted client.
func (h *Host) Reserve(memory uint64) (leave func(), err error) { return h.take(0, memory) }

// Clients is how many have a place.
func (h *Host) Clients() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clients
}

func (h *Host) take(clients int, memory uint64) (leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.clients+clients > h.mostClients {
		return nil, fmt.Errorf("the server has %d clients already: try again later", h.clients)
	}
	if free := h.mostMemory - h.memory; memory > free {
		return nil, fmt.Errorf("the server has %d MiB left for clients and this takes %d: try again later, or ask for less",
			free>>20, (memory+1<<20-1)>>20)
	}
	h.clients += clients
	h.memory += memory
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.clients -= clients
		h.memory -= memory
	}, nil
}

// Serve calls serve for each client that accept returns, in a goroutine of its own, until ctx ends or accept fails.
// Then it waits for all of them. Their errors are lines of log.
func Serve[C any](
	ctx context.Context, accept func(context.Context) (C, error), log *slog.Logger, serve func(C) error,
) error {
	var clients sync.WaitGroup
	defer clients.Wait()
	for {
		client, err := accept(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // stopped by the user
		case err != nil:
			return fmt.Errorf("waiting for a client: %w", err)
		}
		clients.Go(func() {
			if err := serve(client); err != nil {
				log.Warn(err.Error())
			}
		})
	}
}

// ErrIdle is why a server ends the connection of a client that did nothing for idle.
func ErrIdle(idle time.Duration) error {
	return fmt.Errorf("it did nothing for %v, more than a client may", idle)
}

// WhileActive returns a context that also ends, because of late, when steps stays the same for idle, twice that at
// the latest.
func WhileActive(
	ctx context.Context, idle time.Duration, late error, steps *atomic.Uint64,
) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(idle)
		defer tick.Stop()
		for seen := steps.Load(); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := steps.Load()
			if now == seen {
				cancel(late)
				return
			}
			seen = now
		}
	}()
	return ctx, func() { cancel(nil) }
}
