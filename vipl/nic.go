package vipl

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/stag"
)

// Config is what OpenNic is told besides the name of the device. The zero value is usable.
type Config struct {
	// Listener takes connections in place of a listener at the device's address. CloseNic
	// closes it. It is not shared.
	Listener net.Listener
	// Dial makes connections in place of a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// MatchTimeout is how long a connection request may wait for a ConnectWait that it
	// matches. 500 ms if zero; none if negative, so that only a ConnectWait under way
	// finds it. Of Nics that share a port the longest counts.
	MatchTimeout time.Duration
	// CRC sets ViAttributes.CRC of all VIs.
	CRC bool
	// RequireCRC is CRC, and no connection without: ConnectRequest and ConnectAccept fail
	// with ErrInvalidParameter then.
	RequireCRC bool
	// ReadWindow is how many RDMA Reads may be outstanding on a connection, in each
	// direction; the smaller of the two ends' counts. 16 if zero.
	ReadWindow uint16
	// MaxTransferSize is the attribute of the Nic, in octets: 32 KiB at least (VI
	// Architecture 6.1.1.2). 1<<32-1 if zero.
	MaxTransferSize uint32
	// MaxDescriptorsPerQueue is the attribute of the Nic: 1,024 if zero, 32,768 at most.
	MaxDescriptorsPerQueue int
	// Segment is the longest VI segment in octets: 256 to 65,535, which zero stands for.
	Segment int
	// Linger is how long Disconnect may wait for what is on its way to leave. One second
	// if zero; and one at least, at Reliable Reception, once an error of the remote end's
	// message has been found, so that it hears of it.
	Linger time.Duration
}

const (
	hardwareVersion = 1 // softrnic
	providerVersion = 1 // VI/TCP version 1

	minTransfer         = 32 << 10
	defaultReadWindow   = vitcp.DefaultReadWindow
	defaultMatchTimeout = 500 * time.Millisecond
	defaultDepth        = 1024
	maxDepth            = 32768
)

func (c Config) withDefaults() (Config, error) {
	c.ReadWindow = cmp.Or(c.ReadWindow, defaultReadWindow)
	c.MaxTransferSize = cmp.Or(c.MaxTransferSize, math.MaxUint32)
	c.MatchTimeout = cmp.Or(c.MatchTimeout, defaultMatchTimeout)
	c.MaxDescriptorsPerQueue = cmp.Or(c.MaxDescriptorsPerQueue, defaultDepth)
	c.Segment = cmp.Or(c.Segment, segment.MaxSegment)
	switch {
	case c.MaxTransferSize < minTransfer:
		return c, invalid("a maximum transfer size of %d is below 32 KiB", c.MaxTransferSize)
	case c.MaxDescriptorsPerQueue < 0 || c.MaxDescriptorsPerQueue > maxDepth:
		return c, invalid("a queue has 1 to %d descriptors, not %d", maxDepth, c.MaxDescriptorsPerQueue)
	case c.Segment < endpoint.MinSegment || c.Segment > segment.MaxSegment:
		return c, invalid("a segment has %d to %d octets, not %d", endpoint.MinSegment, segment.MaxSegment, c.Segment)
	}
	return c, nil
}

// Nic is an open VI NIC: an IP address, and all that a program has created on it. Make one
// with OpenNic, end it with CloseNic.
//
// Locks are taken in this order: Vi.mu, Nic.mu, that of a CQ, the dispatcher's.
type Nic struct {
	config      Config // constant, as all up to attributes
	host        netip.AddrPort
	attributes  NicAttributes
	tasks       sync.WaitGroup     // added to with mu held
	life        context.Context    // ends with CloseNic
	end         context.CancelFunc // of life
	stags       *stag.Table
	descriptors descRegions
	dispatch    dispatcher
	passive     passive
	untold      atomic.Uint64 // see Usage, as the next
	misdirected atomic.Uint64
	counted     *inventory.Object

	mu       lockorder.Mutex[lockorder.NIC]
	vis      map[*Vi]struct{} // guarded by mu, as all below
	cqs      map[*CQ]struct{}
	ptags    map[ProtectionHandle]int // how many VIs and regions have it
	lastPtag ProtectionHandle
	regions  map[MemHandle]*region
	onError  func(*ErrorDescriptor)
	closed   bool
}

var errNicClosed = invalid("the NIC is closed")

// OpenNic is VipOpenNic (VI Architecture 9.2.1). The device is an address of this host, or
// a name for one: "192.0.2.1", "::1", "localhost", or an interface such as "lo", which
// stands for its first address. A port may follow, as in "127.0.0.1:0", which means any that
// is free; without one the port is vitcp.DefaultPort. With a port alone, ":22089", it is all
// addresses of this host.
//
// The Nic listens from the first ConnectWait or ConnectPeerRequest on; with a port or a
// Config.Listener from now on. The port is shared: with other Nics of this process and, if it
// was not to be any that is free, with those of other processes of this user, where the system
// can pass sockets between them. Each connection request goes to a ConnectWait that it matches,
// wherever that is (VI/TCP 2.2.2.2.1).
//
// Errors: ErrInvalidParameter (no such device, bad Config), ErrInUse (the port is another
// user's, or of a program that does not share it), ErrResource.
func OpenNic(deviceName string, c Config) (*Nic, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	host, explicit, err := device(deviceName)
	if err != nil {
		return nil, err
	}
	if !explicit {
		host = netip.AddrPortFrom(host.Addr(), vitcp.DefaultPort)
	}
	n := &Nic{
		config:  c,
		host:    host,
		vis:     make(map[*Vi]struct{}),
		cqs:     make(map[*CQ]struct{}),
		ptags:   make(map[ProtectionHandle]int),
		regions: make(map[MemHandle]*region),
		onError: logError,
	}
	n.counted = inventory.Open(nil, "vipl NIC", deviceName, inventory.CounterFunc(n.count))
	n.stags = stag.NewTable(stag.Config{Regions: maxRegions, Inventory: n.counted})
	n.descriptors.all = make(map[MemHandle]*descRegion)
	n.life, n.end = context.WithCancel(context.Background())
	n.passive.init(n, host, c.Listener)
	if explicit || c.Listener != nil {
		if err := n.listen(); err != nil {
			n.end()
			n.stags.Close()
			n.counted.Close()
			return nil, err
		}
	}
	n.attributes = n.describe(deviceName)
	return n, nil
}

// listen makes a new Nic listen, and its port what it then is.
func (n *Nic) listen() error {
	l, err := n.passive.listen(n.life)
	if err != nil {
		return err
	}
	if at, ok := l.Addr().(*net.TCPAddr); ok {
		n.host = netip.AddrPortFrom(n.host.Addr(), uint16(at.Port))
	}
	return nil
}

// The limits that are not configured.
const (
	maxVI        = 1 << 14
	maxPtags     = 1 << 16 // VA-3.2.2.1-M3: more than VIs
	maxCQ        = 1 << 14
	maxCQEntries = 1 << 20 // VA-3.4-M2
	maxRegions   = 1 << 16
	maxSegments  = 252 // VA-6.1.1.1-M1, VA-10.4-M1
)

func (n *Nic) describe(name string) NicAttributes {
	host := n.host
	if host.Port() == vitcp.DefaultPort { // which goes without saying
		host = netip.AddrPortFrom(host.Addr(), 0)
	}
	local := NewNetAddress(host, nil).HostAddress
	return NicAttributes{
		Name: name, HardwareVersion: hardwareVersion, ProviderVersion: providerVersion,
		NicAddressLen: uint16(len(local)), LocalNicAddress: local,
		ThreadSafe:          true,
		MaxDiscriminatorLen: MaxDiscriminator,
		MaxRegisterBytes:    math.MaxUint64, MaxRegisterRegions: maxRegions, MaxRegisterBlockBytes: math.MaxInt64,
		MaxVI: maxVI, MaxDescriptorsPerQueue: uint32(n.config.MaxDescriptorsPerQueue), MaxSegmentsPerDesc: maxSegments,
		MaxCQ: maxCQ, MaxCQEntries: maxCQEntries,
		MaxTransferSize: n.config.MaxTransferSize, NativeMTU: uint32(n.config.Segment),
		MaxPtags:        maxPtags,
		RDMAReadSupport: [numLevels]bool{ServiceReliableDelivery: true, ServiceReliableReception: true},
	}
}

// QueryNic is VipQueryNic (VI Architecture 9.8.1). Errors: ErrInvalidParameter (the Nic
// is closed).
func (n *Nic) QueryNic() (*NicAttributes, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errNicClosed
	}
	a := n.attributes
	a.LocalNicAddress = slices.Clone(a.LocalNicAddress)
	return &a, nil
}

// CloseNic is VipCloseNic (VI Architecture 9.2.2), and what a Kernel Agent does when a
// program ends (VA-3.1-M3, VA-11.3.18-M1): it ends all connections and attempts, with what
// is posted completing as flushed, and destroys all VIs, CQs and regions. After it no
// memory is touched and no handler is called; one that has been called may still run.
// Errors: ErrInvalidParameter (closed already).
func (n *Nic) CloseNic() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return errNicClosed
	}
	n.closed = true // nothing is created from now on
	vis := slices.Collect(maps.Keys(n.vis))
	n.mu.Unlock()

	n.end()
	n.dispatch.close()
	n.passive.close()
	var wg sync.WaitGroup
	for _, vi := range vis {
		wg.Go(vi.end)
	}
	wg.Wait()
	n.tasks.Wait()

	n.mu.Lock()
	defer n.mu.Unlock()
	for q := range n.cqs {
		q.destroy()
	}
	for _, r := range n.regions {
		n.ptags[r.attributes.Ptag]--
	}
	for _, p := range n.descriptors.close() {
		n.ptags[p]--
	}
	clear(n.cqs)
	clear(n.regions)
	maps.DeleteFunc(n.ptags, func(_ ProtectionHandle, users int) bool { return users == 0 })
	n.stags.Close()
	n.counted.Close()
	return nil
}

// count is an inventory.CounterFunc. What a closed NIC still has, a call has forgotten to give back.
func (n *Nic) count(tell inventory.Tell) {
	n.mu.Lock()
	defer n.mu.Unlock()
	tell(len(n.vis), "VI")
	tell(len(n.cqs), "CQ")
	tell(len(n.regions), "region")
	if n.closed {
		for p, users := range n.ptags {
			tell(users, fmt.Sprintf("user of protection tag %d", p))
		}
	}
	n.passive.mu.Lock()
	defer n.passive.mu.Unlock()
	tell(len(n.passive.conns), "request")
	tell(n.passive.stale, "stale request")
}

// task runs f on a goroutine that CloseNic waits for, unless the Nic is closed.
func (n *Nic) task(f func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.tasks.Go(f)
	return true
}

// report has the error handler called.
func (n *Nic) report(e ErrorDescriptor) {
	e.NicHandle = n
	n.dispatch.do(func() {
		n.mu.Lock()
		handler := n.onError
		n.mu.Unlock()
		handler(&e)
	})
}
