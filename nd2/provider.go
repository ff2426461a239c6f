package nd2

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// Provider finds and opens adapters (IND2Provider). The zero value is ready; set
// the fields before the first call.
type Provider struct {
	// RNIC configures the RNIC of an adapter. Its Limits are the adapter's but
	// for those that the adapter decides: WR, SGE and CQE.
	RNIC verbs.Config
	// CM configures connections; a listener takes its Rev and Timeout.
	// PrivateData, Model, IRD and ORD are the connector's. CloseTimeout is how
	// long a peer that does not close is waited for.
	CM cm.Config
}

// adapterID names the one adapter there is; every OpenAdapter makes one of it.
const adapterID uint64 = 0x736f6674726e6963 // "softrnic"

// QueryAddressList lists the addresses of this machine: the adapter has them all.
func (p *Provider) QueryAddressList() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("nd2: %w: %w", ErrUnsuccessful, err)
	}
	var list []netip.Addr
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				list = append(list, ip.Unmap())
			}
		}
	}
	return list, nil
}

// ResolveAddress is the identifier of the adapter that has a local address.
// Errors: ErrInvalidAddress.
func (p *Provider) ResolveAddress(local netip.Addr) (adapter uint64, err error) {
	list, err := p.QueryAddressList()
	if err != nil {
		return 0, err
	}
	local = local.Unmap()
	if slices.Contains(list, local.WithZone("")) || len(list) > 0 && local.IsLoopback() && local.Is4() {
		return adapterID, nil
	}
	return 0, refuse(ErrInvalidAddress, "no adapter has the address %v", local)
}

// OpenAdapter opens an adapter. Objects of two openings have nothing to do with
// each other. Errors: ErrInvalidParameter (no such adapter, or RNIC is unusable),
// ErrInsufficientResources.
func (p *Provider) OpenAdapter(id uint64) (*Adapter, error) {
	if id != adapterID {
		return nil, refuse(ErrInvalidParameter, "there is no adapter %#x", id)
	}
	return openAdapter(p)
}
