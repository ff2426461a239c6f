// Package instrument is how package verbs reaches what the packages of lab/ keep from programs: a plan's faults inside
// an RNIC, and a capture of its streams. A program passes a *fault.Injector or a *tap.Tap, and calls none of these.
package instrument

import (
	"errors"
	"time"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// Streams puts itself between the queue pairs of an RNIC and their connections.
type Streams interface {
	// Stream is called before s of queue pair qp runs, of which the first preamble octets out are no FPDUs. It may put a
	// connection of its own in place of s.Conn, or refuse.
	Stream(qp wr.QPID, s *mpa.Stream, preamble int) error
}

// Injector decides what goes wrong in an RNIC.
type Injector interface {
	Streams
	// Open is called before the RNIC is opened. It may refuse, because of ErrUnplugged or by the plan.
	Open() error
	// Attach is called once, by Open: invalidate makes an STag Invalid, and reports whether there was one; publish takes each
	// fault that strikes, and its kind.
	Attach(invalidate func(wr.STag) bool, publish func(kind, strike string))
	// Watches says whether the plan that there is now has anything to say in Post, and whether one ever had in Complete: else
	// they are not called.
	Watches() (posts, completions bool)
	// Post is called for each request that is posted to qp; its first element names s. It may refuse.
	Post(qp wr.QPID, op wr.Op, s wr.STag) error
	// Register is called for each registration. It may refuse.
	Register() error
	// Complete is called for each completion of qp. It says how long that stays hidden, with what comes behind it,
	// and whether the CQ has no room.
	Complete(qp wr.QPID, op wr.Op) (delay time.Duration, full bool)
}

// ErrUnplugged is why there is no RNIC to open.
var ErrUnplugged = errors.New("the RNIC is unplugged")

// FaultInjector is what verbs.Config.Faults takes: a *fault.Injector, which embeds a InjectorCarrier.
type FaultInjector interface{ carriesInjector() }

// InjectorCarrier carries an Injector. Nothing else is a FaultInjector.
type InjectorCarrier struct{ injector Injector }

func (c *InjectorCarrier) carriesInjector()  {}
func (c *InjectorCarrier) carried() Injector { return c.injector }

// CarryInjector makes a InjectorCarrier.
func CarryInjector(i Injector) InjectorCarrier { return InjectorCarrier{i} }

// InjectorOf is what f carries.
func InjectorOf(f FaultInjector) Injector { return f.(interface{ carried() Injector }).carried() }

// Tap is what verbs.Config.Tap takes: a *tap.Tap, which embeds a TapCarrier.
type Tap interface{ carriesTap() }

// TapCarrier carries Streams. Nothing else is a Tap.
type TapCarrier struct{ streams Streams }

func (c *TapCarrier) carriesTap()      {}
func (c *TapCarrier) carried() Streams { return c.streams }

// CarryTap makes a TapCarrier.
func CarryTap(s Streams) TapCarrier { return TapCarrier{s} }

// TapOf is what t carries.
func TapOf(t Tap) Streams { return t.(interface{ carried() Streams }).carried() }
