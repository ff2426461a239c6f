package nvmeof

import (
	"context"
	"errors"
	"fmt"
)

// maxRecords bounds what a target may say of itself.
const maxRecords = 4096

// Discover asks the target at addr, a TCP address, for its discovery log: the subsystems that it has, or knows of. Of c
// Queues, Depth and KeepAlive do not count. Errors: as Dial.
func Discover(ctx context.Context, addr string, c HostConfig) (entries []DiscoveryEntry, err error) {
	h, err := dial(ctx, addr, DiscoveryNQN, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	ctx, cancel := h.config.connecting(ctx)
	defer cancel()
	if entries, err = h.discoveryLog(ctx); err != nil {
		return nil, fmt.Errorf("nvmeof: discovery log of %s: %w", addr, err)
	}
	return entries, nil
}

// discoveryLog reads the log until it does not change meanwhile, as its generation counter tells.
func (h *Host) discoveryLog(ctx context.Context) ([]DiscoveryEntry, error) {
	generation, n, err := h.discoveryHead(ctx)
	for err == nil {
		var entries []DiscoveryEntry
		for i := 0; i < n && err == nil; {
			k := min(n-i, h.info.MaxTransfer/discoveryEntry)
			var page []byte
			page, err = h.readLog(ctx, logDiscovery, uint64(1+i)*discoveryEntry, k*discoveryEntry)
			for at := 0; at < k && err == nil; at++ {
				entries = append(entries, parseDiscovery(page[at*discoveryEntry:][:discoveryEntry]))
			}
			i += k
		}
		if err != nil {
			break
		}
		before := generation
		if generation, n, err = h.discoveryHead(ctx); err == nil && generation == before {
			return entries, nil
		}
	}
	return nil, err
}

// discoveryHead reads the log's generation counter, and how many records it has.
func (h *Host) discoveryHead(ctx context.Context) (generation uint64, records int, err error) {
	b, err := h.readLog(ctx, logDiscovery, 0, discoveryEntry)
	if err != nil {
		return 0, 0, err
	}
	n, format := le.Uint64(b[8:]), le.Uint16(b[16:])
	switch {
	case format != 0:
		return 0, 0, fmt.Errorf("it has format %d, want 0", format)
	case n > maxRecords:
		return 0, 0, fmt.Errorf("it has %d records, want %d at most", n, maxRecords)
	}
	return le.Uint64(b), int(n), nil
}
