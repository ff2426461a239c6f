package nvmeof

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/verbs"
)

// HostConfig is how a host connects. The zero value of each field stands for what is said.
type HostConfig struct {
	RNIC verbs.Config
	// Connection is asked for, of each queue; its PrivateData do not count.
	Connection cm.Config
	// HostNQN is the host's name, of 1 to 223 octets, by which a target may allow it: nqn.2014-08.org.nvmexpress:uuid: and
	// HostID. HostID is its identifier: a random UUID.
	HostNQN string
	HostID  [16]byte
	// Queues is how many I/O queues, a connection each, are asked for: 1, to 1024. Depth is how many commands of each may
	// be outstanding: 32, to 1023. The target may have fewer of both: see Host.Controller.
	Queues, Depth int
	// KeepAlive is for how long the target keeps a host that it does not hear of, in milliseconds at the least: 10 s; the
	// host sends a Keep Alive each third of it, and ends if that has no answer for as long. Negative: the target keeps it,
	// and nothing is sent.
	KeepAlive time.Duration
	// ConnectTimeout is how long Dial and Discover may take: 30 s. CommandTimeout is how long a target may leave a command
	// without an answer: 30 s; then the association ends. CloseTimeout is how long Close waits for calls under way and
	// for the target: 5 s.
	ConnectTimeout, CommandTimeout, CloseTimeout time.Duration
	// Logger, if set, gets a warning when an association ends otherwise than by Close.
	Logger *slog.Logger
}

func (c *HostConfig) defaults() error {
	c.Queues = cmp.Or(c.Queues, 1)
	c.Depth = cmp.Or(c.Depth, 32)
	c.KeepAlive = cmp.Or(c.KeepAlive, 10*time.Second)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, 30*time.Second)
	c.CommandTimeout = cmp.Or(c.CommandTimeout, 30*time.Second)
	c.CloseTimeout = cmp.Or(c.CloseTimeout, 5*time.Second)
	switch {
	case c.Queues < 1 || c.Queues > maxQueues || c.Depth < 1 || c.Depth > maxDepth:
		return fmt.Errorf("nvmeof: Queues %d, Depth %d: want 1 to %d, 1 to %d", c.Queues, c.Depth, maxQueues, maxDepth)
	case len(c.HostNQN) > maxNQN:
		return fmt.Errorf("nvmeof: a HostNQN of %d octets: want %d at most", len(c.HostNQN), maxNQN)
	case c.ConnectTimeout < 0 || c.CommandTimeout < 0 || c.CloseTimeout < 0:
		return errors.New("nvmeof: a negative timeout: leave it zero for the default")
	case c.KeepAlive > 0 && (c.KeepAlive < time.Millisecond || c.KeepAlive > maxKeepAlive):
		return fmt.Errorf("nvmeof: KeepAlive %v: want 1 ms to %v, or less than 0 for none", c.KeepAlive, maxKeepAlive)
	}
	return nil
}

// connecting is ctx for ConnectTimeout.
func (c *HostConfig) connecting(ctx context.Context) (context.Context, context.CancelFunc) {
	cause := fmt.Errorf("%w: ConnectTimeout is %v", context.DeadlineExceeded, c.ConnectTimeout)
	return context.WithTimeoutCause(ctx, c.ConnectTimeout, cause)
}

const (
	maxQueues    = 1024
	maxDepth     = 1<<cidBits - 1 // so that no command identifier is 0xffff
	maxKeepAlive = time.Hour
)

// Host is an association with a controller of a target: the other half of a Target. All methods may be called from any
// goroutine. Make one with Dial, and end it with Close. It does not connect again: when a queue ends, or an answer is
// not what NVMe allows, the association ends with all its queues, and each call says why.
type Host struct {
	config HostConfig
	addr   string
	nqn    string // of the subsystem
	log    *slog.Logger
	nic    *verbs.RNIC
	pd     *verbs.PD
	admin  *hostQueue
	io     []*hostQueue
	ready  chan *hostSlot // of the I/O queues, in turns
	info   Controller
	key    atomic.Uint32 // of regions
	all    sync.WaitGroup

	counted *inventory.Object
	regions taken // of calls under way

	mu      sync.Mutex
	cause   error         // why it has ended
	gone    chan struct{} // closed with it
	orderly bool          // Close has told the target, and closes the connections itself

	closing sync.Once
	err     error // of Close
}

// Dial connects to the subsystem of that NQN, of the target at addr, a TCP address. Discover lists the subsystems. Its
// errors wrap those of cm.Dial; a *CommandError if the target refuses a command, whose Status tells that the subsystem
// is not there (ConnectParameter) or not for this host (ConnectHost); and the end of ctx.
func Dial(ctx context.Context, addr, nqn string, c HostConfig) (*Host, error) {
	if nqn == "" || len(nqn) > maxNQN {
		return nil, fmt.Errorf("nvmeof: NQN %q: want 1 to %d octets; Discover lists what a target has", nqn, maxNQN)
	}
	if nqn == DiscoveryNQN {
		return nil, errors.New("nvmeof: that is the NQN of the discovery subsystem: call Discover")
	}
	return dial(ctx, addr, nqn, c)
}

func dial(ctx context.Context, addr, nqn string, c HostConfig) (*Host, error) {
	if err := c.defaults(); err != nil {
		return nil, err
	}
	nic, err := verbs.Open(c.RNIC)
	if err != nil {
		return nil, fmt.Errorf("nvmeof: opening the RNIC: %w", err)
	}
	h := &Host{config: c, addr: addr, nqn: nqn, log: cm.LimitLogger(nil), nic: nic, gone: make(chan struct{})}
	h.counted = inventory.Open(nil, "nvmeof host", addr, inventory.CounterFunc(h.count))
	ctx, cancel := c.connecting(ctx)
	defer cancel()
	if err := h.associate(ctx); err != nil {
		h.fail(err)
		h.release()
		return nil, fmt.Errorf("nvmeof: connecting to %s of %s: %w", nqn, addr, err)
	}
	h.mu.Lock()
	h.log = cm.LimitLogger(c.Logger) // from now on there is no caller to tell
	h.mu.Unlock()
	return h, nil
}

// associate makes the queues, and the controller ready.
func (h *Host) associate(ctx context.Context) (err error) {
	if h.pd, err = h.nic.AllocatePD(); err != nil {
		return err
	}
	if err := h.identity(); err != nil {
		return err
	}
	if h.admin, err = h.connect(ctx, 0, adminDepth-1, commandSize); err != nil {
		return err
	}
	entries, err := h.enable(ctx)
	if err != nil || h.nqn == DiscoveryNQN {
		return err
	}
	if err := h.setQueues(ctx, entries); err != nil {
		return err
	}
	h.ready = make(chan *hostSlot, h.info.Queues*h.info.Depth)
	for i := range h.info.Queues {
		q, err := h.connect(ctx, uint16(i+1), h.info.Depth, h.info.capsule)
		if err != nil {
			return fmt.Errorf("I/O queue %d: %w", i+1, err)
		}
		h.io = append(h.io, q)
	}
	for i := range h.info.Depth {
		for _, q := range h.io {
			h.ready <- q.slots[i]
		}
	}
	if h.config.KeepAlive > 0 {
		h.all.Go(h.keepAlive)
	}
	return nil
}

// identity gives a host without a name, or an identifier, those of its RNIC's UUID.
func (h *Host) identity() error {
	if h.config.HostID == [16]byte{} {
		a, err := h.nic.Query()
		if err != nil {
			return err
		}
		h.config.HostID = a.ID
	}
	if h.config.HostNQN == "" {
		h.config.HostNQN = "nqn.2014-08.org.nvmexpress:uuid:" + uuidText(h.config.HostID)
	}
	return nil
}

func uuidText(b [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// keepAlive tells the target that the host is there.
func (h *Host) keepAlive() {
	t := time.NewTicker(h.config.KeepAlive / 3)
	defer t.Stop()
	for {
		select {
		case <-h.gone:
			return
		case <-t.C:
		}
		_, err := h.do(context.Background(), hostCall{
			queue: h.admin.free, command: newCommand(adminKeepAlive, 0), name: "Keep Alive",
			limit: min(h.config.KeepAlive, h.config.CommandTimeout),
		})
		if err != nil {
			h.fail(err)
			return
		}
	}
}

// Controller is what the target says of itself.
func (h *Host) Controller() Controller { return h.info }

// Done is closed when the association has ended.
func (h *Host) Done() <-chan struct{} { return h.gone }

// Err says why the association has ended: nil before, net.ErrClosed after Close.
func (h *Host) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cause
}

// enter makes the caller one that Close waits for; the error says that it has ended.
func (h *Host) enter() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause == nil {
		h.all.Add(1)
	}
	return h.cause
}

// fail ends the association. The first reason counts.
func (h *Host) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause != nil {
		return
	}
	h.cause = err
	if !errors.Is(err, net.ErrClosed) {
		h.log.Warn("nvmeof: an association has ended", "target", h.addr, "subsystem", h.nqn, "error", err)
	}
	close(h.gone)
}

// Close tells the target that this is the end, closes the connections, and gives back what Dial has taken. It waits for
// calls under way, and the target, for CloseTimeout at most; calls that have not ended then fail with net.ErrClosed, as
// later ones do. Its error says that the target has not been told. Closing twice is closing once; a host that has ended
// before closes without an error.
func (h *Host) Close() error {
	h.closing.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), h.config.CloseTimeout)
		defer cancel()
		if h.Err() == nil {
			h.err = h.leave(ctx)
		}
		h.mu.Lock()
		h.orderly = h.cause == nil && h.err == nil
		orderly := h.orderly
		h.mu.Unlock()
		h.fail(net.ErrClosed)
		if orderly {
			for _, q := range h.io {
				_ = q.conn.CloseContext(ctx) // the target has answered all, and been told: however this ends, nothing is lost
			}
			_ = h.admin.conn.CloseContext(ctx)
		}
		h.release()
	})
	return h.err
}

// leave waits until no I/O command is outstanding, and shuts the controller down.
func (h *Host) leave(ctx context.Context) error {
	for range cap(h.ready) {
		select {
		case <-h.ready:
		case <-h.gone:
			return fmt.Errorf("nvmeof: closing: %w", h.Err())
		case <-ctx.Done():
			return fmt.Errorf("nvmeof: closing: calls were under way still after %v, and were ended", h.config.CloseTimeout)
		}
	}
	if err := h.shutDown(ctx); err != nil {
		return fmt.Errorf("nvmeof: closing: the target was not told: %w", err)
	}
	return nil
}

// release gives everything back when nothing runs any more: fail has been called.
func (h *Host) release() {
	h.all.Wait()
	h.counted.Close()
	_ = h.nic.Close()
}
