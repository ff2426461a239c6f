package vitcp

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// figures are all transitions of both machines, as figures 4.2 and 4.3 have them
// and, marked +, as the project adds. All other pairs are refused.
var figures = map[*machine][]string{
	activeMachine: {
		"Disconnected: VipConnectRequest -> Connecting (set up TCP)",
		"Connecting: TCP connected -> Pending Accept (ConnectRequest)",
		"Connecting: TCP setup fails -> Disconnected ()",
		"Connecting: VipDisconnect -> Disconnected (close TCP)", // +
		"Connecting: timeout -> Disconnected (close TCP)",       // +
		"Pending Accept: ConnectAccept -> Connected ()",
		"Pending Accept: ConnectReject -> Disconnected (close TCP)",
		"Pending Accept: ConnectNoMatch -> Disconnected (close TCP)",
		"Pending Accept: timeout -> Disconnected (close TCP)",
		"Pending Accept: TCP closes -> Connecting (close TCP, set up TCP)",
		"Pending Accept: VipDisconnect -> Disconnected (close TCP)",         // +
		"Pending Accept: ConnectRequest -> Disconnected (close TCP)",        // +
		"Pending Accept: protocol violation -> Disconnected (close TCP)",    // +
		"Pending Accept: attributes do not fit -> Disconnected (close TCP)", // +
	},
	passiveMachine: {
		"Listening: TCP connected -> Incoming ()",
		"Incoming: timeout -> Disconnected (close TCP)",
		"Incoming: TCP closes -> Disconnected (close TCP)",
		"Incoming: ConnectRequest -> Matching (search)",
		"Incoming: VipDisconnect -> Disconnected (close TCP)",      // +
		"Incoming: ConnectAccept -> Disconnected (close TCP)",      // +
		"Incoming: ConnectReject -> Disconnected (close TCP)",      // +
		"Incoming: ConnectNoMatch -> Disconnected (close TCP)",     // +
		"Incoming: protocol violation -> Disconnected (close TCP)", // +
		"Matching: no matching discriminator -> Disconnected (ConnectNoMatch, close TCP)",
		"Matching: discriminator match -> Pending Accept (offer)",
		"Matching: VipDisconnect -> Disconnected (close TCP)",                        // +
		"Matching: TCP closes -> Disconnected (close TCP)",                           // +
		"Matching: timeout -> Disconnected (close TCP)",                              // +
		"Matching: protocol violation -> Disconnected (close TCP)",                   // +
		"Matching: attributes do not fit -> Disconnected (ConnectReject, close TCP)", // +
		"Pending Accept: VipConnectReject -> Disconnected (ConnectReject, close TCP)",
		"Pending Accept: VipConnectAccept -> Connected (ConnectAccept)",
		"Pending Accept: VipDisconnect -> Disconnected (close TCP)",      // +
		"Pending Accept: TCP closes -> Disconnected (close TCP)",         // +
		"Pending Accept: timeout -> Disconnected (close TCP)",            // +
		"Pending Accept: protocol violation -> Disconnected (close TCP)", // +
		"Pending Accept: attributes do not fit -> Pending Accept ()",     // +
	},
}

// figureConnected are those of the state that both machines end in.
var figureConnected = []string{
	"Connected: VipDisconnect -> Disconnected (close TCP)",
	"Connected: TCP closes -> Disconnected (close TCP)",
	"Connected: ConnectRequest -> Disconnected (close TCP)",     // +
	"Connected: ConnectAccept -> Disconnected (close TCP)",      // +
	"Connected: ConnectReject -> Disconnected (close TCP)",      // +
	"Connected: ConnectNoMatch -> Disconnected (close TCP)",     // +
	"Connected: protocol violation -> Disconnected (close TCP)", // +
}

func TestEveryPair(t *testing.T) {
	for m, want := range figures {
		t.Run(m.String(), func(t *testing.T) {
			var got []string
			for _, s := range m.states {
				for trig := range numTriggers {
					next, do, err := m.step(s, trig)
					if err != nil {
						require.ErrorIs(t, err, errRefused)
						assert.Equal(t, s, next, "a refusal changes nothing")
						assert.Zero(t, do)
						continue
					}
					assert.Contains(t, m.states, next)
					got = append(got, fmt.Sprintf("%v: %v -> %v (%v)", s, trig, next, do))
				}
			}
			assert.ElementsMatch(t, append(figureConnected, want...), got)
		})
	}
}

// A state of the other machine, or what is no state or trigger, is refused.
func TestForeignStates(t *testing.T) {
	for _, c := range []struct {
		m    *machine
		s    state
		trig trigger
	}{
		{activeMachine, stateIncoming, trigRequest},
		{passiveMachine, stateConnecting, trigTCPUp},
		{activeMachine, state(99), trigRequest},
		{activeMachine, stateDisconnected, trigger(99)},
	} {
		_, _, err := c.m.step(c.s, c.trig)
		assert.ErrorIs(t, err, errRefused)
	}
	assert.Equal(t, "State(99)", state(99).String())
	assert.Equal(t, "Trigger(99)", trigger(99).String())
}

// What leads to Disconnected with a TCP connection closes it, and what stays or
// goes on does not: no VI connection without its TCP connection (VT-2.2.2.2.2-M1,
// VT-2.2.2.2.2-M2).
func TestEndsTogether(t *testing.T) {
	for m := range figures {
		for _, s := range m.states {
			for trig := range numTriggers {
				next, do, err := m.step(s, trig)
				if err != nil {
					continue
				}
				closes := do&actCloseTCP != 0
				again := do&actSetupTCP != 0 && s != stateDisconnected
				ends := next == stateDisconnected && trig != trigTCPFailed
				assert.Equal(t, ends || again, closes, "%v, %v: %v", m, s, trig)
			}
		}
	}
}
