package vitcp

import (
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// request is the CE header of a ConnectRequest. c is resolved.
func (c Config) request(calling, called segment.Discriminator, peerToPeer bool) segment.CE {
	ce := segment.CE{
		Attributes: (c.Enable & enableMask).WithLevel(c.Level),
		MTU:        c.MTU,
		ReadWindow: c.ReadWindow,
		Calling:    calling,
		Called:     called,
	}
	if peerToPeer {
		ce.Attributes |= segment.PeerToPeer
	}
	if c.CRC {
		ce.Options |= segment.OptionCRC
	}
	return ce
}

// accept is the CE header of the ConnectAccept that answers req. c is resolved.
// The discriminators are the request's: the end that called is the same. The
// error is a *MismatchError.
func (c Config) accept(req *segment.CE) (segment.CE, error) {
	ce := c.request(req.Calling, req.Called, req.Attributes&segment.PeerToPeer != 0)
	if level, ok := req.Attributes.Level(); !ok || level != c.Level { // VT-3.3-M1
		return ce, &MismatchError{Reason: ReasonLevel, Local: ce, Peer: *req}
	}
	ce.MTU = min(ce.MTU, req.MTU) // VT-3.3-M4
	ce.ReadWindow = min(ce.ReadWindow, req.ReadWindow)
	ce.Options &= req.Options // VT-3.6-O1
	if c.RequireCRC && ce.Options&segment.OptionCRC == 0 {
		return ce, &MismatchError{Reason: ReasonCRC, Local: ce, Peer: *req}
	}
	return ce, nil
}

// unfit reports whether nobody could accept a request, and why.
func unfit(req *segment.CE) (Reason, bool) {
	if _, ok := req.Attributes.Level(); !ok { // VT-3.3-M1
		return ReasonLevel, true
	}
	return ReasonMTU, req.MTU == 0
}

// check judges a ConnectAccept, acc, against the request c that it answers.
func check(c, acc *segment.CE, requireCRC bool) error {
	own, _ := c.Attributes.Level()
	level, ok := acc.Attributes.Level()
	bad := func(r Reason) error { return &MismatchError{Reason: r, Local: *c, Peer: *acc} }
	switch differ := c.Attributes ^ acc.Attributes; {
	case !ok || level != own: // VT-3.3-M1
		return bad(ReasonLevel)
	case differ&segment.PeerToPeer != 0: // VT-3.3-M2
		return bad(ReasonPeerToPeer)
	case acc.MTU == 0 || acc.MTU > c.MTU: // VT-3.3-M4
		return bad(ReasonMTU)
	case acc.Options&segment.OptionCRC&^c.Options != 0, // VT-3.6-O1
		requireCRC && acc.Options&segment.OptionCRC == 0:
		return bad(ReasonCRC)
	case !sameVIs(c, acc): // VT-2.2.2.2.2-M4
		return bad(ReasonDiscriminator)
	}
	return nil
}

// sameVIs reports whether acc names the VIs of the request c. Section 3.3 does
// not say whether "calling" in a ConnectAccept is the end that called or the one
// that sends: both are taken.
func sameVIs(c, acc *segment.CE) bool {
	return acc.Calling == c.Calling && acc.Called == c.Called ||
		acc.Calling == c.Called && acc.Called == c.Calling
}

// agreed is what the segments of establishment add up to for the end that sent
// own. The peer's MTU and options have been checked.
func agreed(own, peer *segment.CE, ownHeader, peerHeader *segment.Header) *Agreed {
	level, _ := own.Attributes.Level()
	a := &Agreed{
		Active:             ownHeader.Type == segment.ConnectRequest,
		Level:              level,
		MTU:                min(own.MTU, peer.MTU),
		CRC:                own.Options&peer.Options&segment.OptionCRC != 0, // VT-3.6-M1
		ReadWindow:         min(own.ReadWindow, peer.ReadWindow),
		Local:              own.Attributes,
		Peer:               peer.Attributes,
		Urgent:             peer.Options&segment.OptionUrgent != 0,
		LocalNumber:        ownHeader.Number,
		PeerNumber:         peerHeader.Number,
		PeerRxPosted:       peerHeader.RxPosted,
		LocalDiscriminator: own.Calling,
		PeerDiscriminator:  own.Called,
	}
	if !a.Active {
		a.LocalDiscriminator, a.PeerDiscriminator = a.PeerDiscriminator, a.LocalDiscriminator
	}
	return a
}
