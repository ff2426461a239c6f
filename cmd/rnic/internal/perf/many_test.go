package perf

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
)

func TestPerfMany(t *testing.T) {
	for flags, ways := range map[string][]manyWay{
		"--rounds 2":                  {manyWithCRC},
		"--rounds 1 --poll --crc off": {manyPolling},
		"--rounds 1 --plain":          {manyWaiting, manyPolling, manyWithCRC, manyPlain},
	} {
		t.Run(flags, func(t *testing.T) {
			args := append([]string{"perf", "many", "--json", "--qps", "1,3", "--duration", "20ms"}, strings.Fields(flags)...)
			r := clitest.Run(t.Context(), args...)
			require.Zero(t, r.Status, r.Stderr)
			var got []manyResult
			clitest.Decode(t, r.Stdout, &got)
			require.Len(t, got, 2*len(ways))
			for i, r := range got {
				assert.Equal(t, []int{1, 3}[i/len(ways)], r.QPs)
				assert.Equal(t, ways[i%len(ways)], r.manyWay)
				assert.Positive(t, r.Rate)
				assert.GreaterOrEqual(t, r.Slowest, 0.0)
				assert.LessOrEqual(t, r.Slowest, 1.0)
				if runtime.GOOS == "windows" {
					assert.Nil(t, r.CPU)
					continue
				}
				require.NotNil(t, r.CPU)
				assert.Positive(t, *r.CPU)
			}
		})
	}
}

// All queue pairs share one CQ, on which their program waits or which it polls.
func TestManyShape(t *testing.T) {
	for way, want := range map[manyWay]scaleShape{
		manyWaiting: {cqs: 1, sendDepth: 8, recvDepth: 4, sges: 1, waiting: endpoint.WaitSleep},
		manyPolling: {cqs: 1, sendDepth: 8, recvDepth: 4, sges: 1, waiting: endpoint.WaitPoll},
		manyWithCRC: {cqs: 1, sendDepth: 8, recvDepth: 4, sges: 1, waiting: endpoint.WaitSleep, crc: true},
	} {
		assert.Equal(t, want, way.shape(), way)
	}
	end, err := newScaleEnd(9, manyWaiting.shape())
	require.NoError(t, err)
	assert.Len(t, end.cq, 1)
	require.NoError(t, end.nic.Close())
}

// Both processes' time counts, and the slowest connection stands beside the median.
func TestManyResult(t *testing.T) {
	at := time.Now()
	took := func(d time.Duration) *time.Duration { return &d }
	before := manySample{trips: []int64{10, 10, 10}, here: took(time.Second), there: took(time.Minute), at: at}
	after := manySample{
		trips: []int64{110, 60, 210}, here: took(time.Second + 700*time.Microsecond),
		there: took(time.Minute + 2800*time.Microsecond), at: at.Add(100 * time.Millisecond),
	}
	r := newManyResult(before, after)
	assert.InEpsilon(t, 3.5, r.Rate, 1e-9)
	require.NotNil(t, r.CPU)
	assert.InEpsilon(t, 10, *r.CPU, 1e-9)
	assert.InEpsilon(t, 0.5, r.Slowest, 1e-9)

	after.there = nil
	assert.Nil(t, newManyResult(before, after).CPU, "not known of one of them")
	after.trips = []int64{10, 10, 11}
	assert.Zero(t, newManyResult(before, after).Slowest, "most have made none")
}

func TestMedianOfMany(t *testing.T) {
	cpu := func(us float64) *float64 { return &us }
	r := medianOfMany([]manyResult{
		{QPs: 16, manyWay: manyPolling, Rate: 1, CPU: cpu(30), Slowest: 0.5},
		{QPs: 16, manyWay: manyPolling, Rate: 3, CPU: cpu(10), Slowest: 0.9},
		{QPs: 16, manyWay: manyPolling, Rate: 2, CPU: cpu(20), Slowest: 0.7},
	})
	assert.Equal(t, manyResult{QPs: 16, manyWay: manyPolling, Rate: 2, CPU: cpu(20), Slowest: 0.7}, r)
	assert.Nil(t, medianOfMany([]manyResult{{}}).CPU)
}

// watchBubble is the result of watch with run, in time that passes by itself, when the request to the
// server fails with failing.
func watchBubble(t *testing.T, failing error, run func(w *manyWindow, ctx context.Context) error) (*manyWindow, error) {
	t.Helper()
	var w *manyWindow
	var err error
	synctest.Test(t, func(t *testing.T) {
		w = &manyWindow{
			processor: func() (here, there *time.Duration, err error) { return nil, nil, failing },
			duration:  time.Second, trips: make([]tripCounter, 1),
		}
		err = w.watch(t.Context(), func(ctx context.Context) error { return run(w, ctx) })
	})
	return w, err
}

// What comes back in the first quarter of a second is not counted, and the last message
// is waited for.
func TestManyWatch(t *testing.T) {
	w, err := watchBubble(t, nil, func(w *manyWindow, _ context.Context) error {
		time.Sleep(time.Millisecond)
		for !w.closing.Load() {
			w.trips[0].Add(1)
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	})
	require.NoError(t, err)
	assert.InEpsilon(t, 0.1, w.result.Rate, 1e-9)
}

// A round trip counts at least, however long it takes.
func TestManyWatchWaitsForOne(t *testing.T) {
	w, err := watchBubble(t, nil, func(w *manyWindow, _ context.Context) error {
		time.Sleep(2 * time.Second)
		w.trips[0].Add(1)
		for !w.closing.Load() {
			time.Sleep(time.Second)
		}
		return nil
	})
	require.NoError(t, err)
	assert.InEpsilon(t, 0.0005, w.result.Rate, 1e-9)
}

// Whatever goes wrong ends the measurement, and tells why.
func TestManyWatchFails(t *testing.T) {
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		failing error
		run     func(w *manyWindow, ctx context.Context) error
		want    string
	}{
		"the connections": {nil, func(*manyWindow, context.Context) error { return broken }, "broken"},
		"nothing comes back": {nil, func(_ *manyWindow, ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, "no message has come back for 11s"},
		"the last message is lost": {nil, func(w *manyWindow, ctx context.Context) error {
			time.Sleep(time.Second)
			w.trips[0].Add(1)
			<-ctx.Done()
			return context.Cause(ctx)
		}, "some messages have not come back for 10s"},
		"the server": {broken, func(_ *manyWindow, ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := watchBubble(t, tt.failing, tt.run)
			assert.EqualError(t, err, tt.want)
		})
	}
}

func TestPrintMany(t *testing.T) {
	us := 12.5
	var out bytes.Buffer
	require.NoError(t, printMany(&out, manyPolling, []manyResult{
		{QPs: 1, manyWay: manyPolling, Rate: 60, CPU: &us, Slowest: 1},
		{QPs: 16, manyWay: manyPolling, Rate: 50, Slowest: 0.75},
	}))
	assert.Contains(t, out.String(), "64 octets, polling, CRC off\n")
	assert.Regexp(t, `\n +1 +60\.00 +12\.50 +1\.00\n +16 +50\.00 +not known +0\.75\n`, out.String())

	out.Reset()
	require.NoError(t, printManyBesidePlain(&out, []manyResult{
		{QPs: 16, manyWay: manyWaiting, Rate: 30, CPU: &us, Slowest: 0.9},
		{QPs: 16, manyWay: manyPolling, Rate: 20, CPU: &us, Slowest: 0.8},
		{QPs: 16, manyWay: manyWithCRC, Rate: 15, CPU: &us, Slowest: 0.7},
		{QPs: 16, manyWay: manyPlain, Rate: 40, Slowest: 0},
	}))
	assert.Regexp(t, `k/s +16 +30\.00 +20\.00 +15\.00 +40\.00 +0\.75 +0\.50 +0\.50\n`, out.String())
	assert.Regexp(t, `us each +16 +12\.50 +12\.50 +12\.50 +not known +- +- +1\.00\n`, out.String())
	assert.Regexp(t, `slowest/median +16 +0\.90 +0\.80 +0\.70 +0\.00 +- +- +0\.78\n`, out.String())
}
