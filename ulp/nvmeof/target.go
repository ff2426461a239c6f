package nvmeof

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/verbs"
)

// Config is how a target serves. The zero value of each field stands for what is said.
type Config struct {
	RNIC verbs.Config
	// Connection is offered to each host.
	Connection cm.Config
	// Queues is how many I/O queues a controller has at most: 16. Depth is how many commands of a queue may be
	// outstanding: 128, 2 to 1024.
	Queues, Depth int
	// InlineData is how many octets of data a command capsule of an I/O queue may bring along: 4096; negative: none.
	InlineData int
	// SharedReceives, if not 0, is how many receives all queues share, in place of Depth for each; a command that finds
	// none waits.
	SharedReceives int
	// NoInvalidate answers with plain Sends where a host has asked for Send with Invalidate, as it has to allow.
	NoInvalidate bool
	// Connections is how many queues all hosts together may have: 1024. A host, an IPv4 address or an IPv6 /64, has as
	// many as are left free at most: one alone has half. Those without a Connect that succeeded keep none out: for one more
	// the oldest of the host that has most of them is reset.
	Connections int
	// ConnectTimeout is how long a connection may be there without a Connect that succeeds: 30 s.
	ConnectTimeout time.Duration
	// StallTimeout is how long a host may not take an answer, with 1 MiB of data at most, or leave an RDMA Read of its
	// memory, of 1 MiB at most, without an answer, while nothing else of the queue completes either: 10 s.
	StallTimeout time.Duration
	// Advertise is the address that the discovery log names, host:port; the one that the host came to otherwise.
	Advertise string
	// Logger, if set, gets a warning for each host that is refused, connection that ends otherwise than by its host, controller
	// that is not kept alive and disk that fails: ten a second at most ([cm.LimitLogger]).
	Logger *slog.Logger
}

// Target serves subsystems. Make one with New, and end it with Close.
type Target struct {
	config     Config
	log        *slog.Logger
	subsystems map[string]*Subsystem
	nic        *verbs.RNIC
	pd         *verbs.PD
	buffers    buffers
	common
	shared  *receives // nil: each queue has its own
	all     sync.WaitGroup
	counted *inventory.Object
	closed  atomic.Bool

	mu          sync.Mutex
	controllers map[uint16]*controller
	lastID      uint16
	places      places
	genctr      uint64
}

// New makes a target of the given subsystems.
func New(c Config, subsystems ...*Subsystem) (*Target, error) {
	defaults(&c)
	if c.Depth < 2 || c.Depth > 1024 || c.Queues < 1 || c.Queues > 1024 || c.InlineData > 64<<10 || c.InlineData%16 != 0 {
		return nil, fmt.Errorf("nvmeof: Depth %d, Queues %d, InlineData %d: want 2 to 1024, 1 to 1024, a multiple of 16 to 64 KiB", c.Depth, c.Queues, c.InlineData)
	}
	t := &Target{config: c, log: cm.LimitLogger(c.Logger), subsystems: map[string]*Subsystem{}, controllers: map[uint16]*controller{}, genctr: 1, common: newCommon()}
	t.places.init(c.Connections)
	for _, s := range subsystems {
		if t.subsystems[s.nqn] != nil {
			return nil, fmt.Errorf("nvmeof: two subsystems are called %q", s.nqn)
		}
		t.subsystems[s.nqn] = s
	}
	var err error
	if t.nic, err = verbs.Open(c.RNIC); err != nil {
		return nil, err
	}
	if t.pd, err = t.nic.AllocatePD(); err == nil && c.SharedReceives > 0 {
		t.shared, err = shareReceives(t.nic, t.pd, c.SharedReceives, c.capsule(1))
	}
	if err != nil {
		_ = t.nic.Close()
		return nil, err
	}
	t.buffers.pd = t.pd
	t.counted = inventory.Open(nil, "nvmeof target", nil, inventory.CounterFunc(t.count))
	return t, nil
}

func defaults(c *Config) {
	c.Queues = cmp.Or(c.Queues, 16)
	c.Depth = cmp.Or(c.Depth, 128)
	c.InlineData = cmp.Or(c.InlineData, 4096)
	c.Connections = cmp.Or(c.Connections, 1024)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, 30*time.Second)
	if c.StallTimeout <= 0 {
		c.StallTimeout = 10 * time.Second
	}
	c.InlineData = max(c.InlineData, 0)
}

// capsule is the size of a command capsule of a queue, in octets.
func (c *Config) capsule(qid uint16) int {
	if qid == 0 {
		return commandSize
	}
	return commandSize + c.InlineData
}

// Serve takes hosts from l until ctx ends, then ends their connections, closes l, and returns nil. Its error is that of l otherwise.
func (t *Target) Serve(ctx context.Context, l *cm.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer t.all.Wait()
	defer cancel()
	defer l.Close()
	for {
		req, err := l.Accept(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		t.all.Go(func() { t.connect(ctx, req) })
	}
}

// Close gives back what New has taken. Serve has returned before.
func (t *Target) Close() error {
	t.closed.Store(true)
	t.counted.Close()
	return t.nic.Close()
}

// connect serves one connection until its end.
func (t *Target) connect(ctx context.Context, req *cm.Request) {
	h, status := decodeHello(req.PrivateData(), &t.config)
	var s *seat
	if status == 0 {
		if s = t.place(ctx, hostOf(req.RemoteAddr())); s == nil {
			status = rejectNoResources
		}
	}
	if status != 0 {
		t.log.Warn("nvmeof: a host was refused", "host", req.RemoteAddr(), "transport_status", status)
		_ = req.Reject(rejected(status))
		return
	}
	defer t.leave(s)
	ctx = s.ctx
	q, err := newQueue(ctx, t, h)
	if err != nil {
		_ = req.Reject(rejected(rejectNoResources))
		t.log.Warn("nvmeof: a connection was not set up", "host", req.RemoteAddr(), "error", err)
		return
	}
	defer q.release()
	conf := t.config.Connection
	conf.PrivateData = h.accepted()
	conn, err := req.Accept(ctx, q.qp, conf)
	if err != nil {
		_ = req.Reject(rejected(rejectNoResources)) // if it stands: Serve ends
		t.log.Warn("nvmeof: a connection was not set up", "host", req.RemoteAddr(), "error", err)
		return
	}
	q.local, q.seat = req.LocalAddr().String(), s
	q.run(conn)
	if err := conn.Err(); err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		t.log.Warn("nvmeof: a queue ended", "host", req.RemoteAddr(), "queue", h.qid, "error", err)
	}
}

// associate gives a new controller its identifier; false if none is left.
func (t *Target) associate(c *controller) bool {
	t.mu.Lock()
	for range 0xffef {
		if t.lastID++; t.lastID > 0xffef {
			t.lastID = 1
		}
		if t.controllers[t.lastID] == nil {
			c.id = t.lastID
			t.controllers[c.id] = c
			break
		}
	}
	t.mu.Unlock()
	if c.id != 0 && c.subsys != nil {
		c.subsys.mu.Lock()
		c.subsys.controllers[c.id] = c
		c.subsys.mu.Unlock()
	}
	return c.id != 0
}

func (t *Target) forget(c *controller) {
	if c.subsys != nil {
		c.subsys.mu.Lock()
		delete(c.subsys.controllers, c.id)
		c.subsys.mu.Unlock()
	}
	t.mu.Lock()
	delete(t.controllers, c.id)
	t.mu.Unlock()
}

func (t *Target) controller(id uint16) *controller {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.controllers[id]
}

func (t *Target) names() []string { return slices.Sorted(maps.Keys(t.subsystems)) }
