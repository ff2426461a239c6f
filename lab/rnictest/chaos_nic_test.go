package rnictest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/stats"
)

// TestChaosNIC has other processes' commands come to the NICs of both ends at random, under traffic. A port that was down, or slow, costs
// nothing but time: each request completes exactly once, with success, and all data are as they were. If an RNIC fails each request completes
// once all the same. Nothing is left. It runs 20 times, or for SOFTRNIC_CHAOS_SECONDS (make chaos).
func TestChaosNIC(t *testing.T) {
	seconds, _ := strconv.Atoi(os.Getenv("SOFTRNIC_CHAOS_SECONDS"))
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	total := tally{}
	for seed := uint64(0); seed < 20 || time.Now().Before(end); seed++ {
		ok := t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			x := &chaos{T: t, r: rand.New(rand.NewPCG(seed, 2)), looks: 100}
			x.c = Config{Loopback: seed%2 == 0, Recvs: chaosRecvs, RecvSize: chaosSize}
			x.c.CM.NoCRC, x.c.CM.Markers = x.r.IntN(4) == 0, x.r.IntN(4) == 0
			fails := seed%5 == 4
			if fails {
				x.looks = 3 // nothing comes any more
			}
			x.between = x.commands(fails)
			whole := total.Whole
			x.run(&total)
			assert.Equal(t, !fails, total.Whole > whole, "whole if, and only if, nothing has failed")
		})
		if !ok {
			break
		}
	}
	t.Logf("%+v", total)
	assert.Positive(t, total.Whole)
	assert.Positive(t, total.Ended)
}

// commands are those that come between posts. The last ones have all be as it was, or one of the RNICs fail.
func (x *chaos) commands(fails bool) func() {
	var control [2]stats.Controller
	left := 18 // there are 20 posts at least
	return func() {
		if control[0] == nil {
			for i, e := range x.ends {
				control[i] = fault.Control("nic", e.NIC, nil)
			}
		}
		left--
		switch {
		case left > 0:
			cmd := x.command()
			_, err := control[x.r.IntN(2)].Control(cmd)
			require.NoError(x, err, "%+v", cmd)
			time.Sleep(time.Duration(x.r.IntN(2000)) * time.Microsecond)
		case left == 0:
			for i, c := range control {
				_, err := c.Control(stats.Command{Do: "quiet"})
				require.NoError(x, err)
				assert.Equal(x, &stats.Port{Device: "nic", State: "ACTIVE"}, c.Port(x.ends[i].NIC))
			}
			if fails {
				_, err := control[x.r.IntN(2)].Control(stats.Command{Do: "fatal"})
				require.NoError(x, err)
			}
		}
	}
}

func (x *chaos) command() stats.Command {
	switch x.r.IntN(6) {
	case 0, 1:
		return stats.Command{Do: "down"}
	case 2, 3:
		return stats.Command{Do: "up"}
	case 4:
		return stats.Command{Do: "quiet"}
	}
	var what string
	for what == "" || x.r.IntN(3) == 0 {
		what = []string{
			fmt.Sprintf("%dm", 50+x.r.IntN(2000)), fmt.Sprintf("%dus", 1+x.r.IntN(3000)), fmt.Sprintf("%dm %dus", 50+x.r.IntN(2000), 1+x.r.IntN(3000)),
			fmt.Sprintf("%d%%", 1+x.r.IntN(20)),
		}[x.r.IntN(4)]
	}
	return stats.Command{Do: "degrade", Text: what}
}
