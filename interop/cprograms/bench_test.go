//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFigures: what is taken from the tables of perftest 4.5.
func TestFigures(t *testing.T) {
	const (
		lat  = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n 64      20000          5.19           1041.14      7.06     	       9.16        	19.34  		32.19   		200.11 \n"
		bw   = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 65536      20000            0.00               1176.36  		   0.018822\n"
		rate = " 64         1000000          0.00               44.29  		   0.725652\n"
	)
	all := goals()
	for i, c := range []struct{ text, want string }{{lat, "7.06"}, {lat, "7.06"}, {bw, "1176.36"}, {"", ""}, {rate, "0.725652"}, {"measured 2.031\n", "2.031"}, {"measured 2.031\n", "2.031"}, {"measured 5.31\n", "5.31"}} {
		m := all[i].figure.FindStringSubmatch(c.text)
		if c.want == "" {
			assert.Nil(t, m)
			continue
		}
		require.NotNil(t, m, all[i].name)
		assert.Equal(t, c.want, m[1])
	}
}

func TestBenchTable(t *testing.T) {
	all := goals()
	got := make([]samples, len(all))
	got[0] = samples{c: []float64{8, 9, 7}, perf: []float64{8, 8, 8}, ratio: []float64{1, 1.2, 0.9}}
	got[4] = samples{c: []float64{1, 2}, perf: []float64{4, 4}, ratio: []float64{0.25, 0.5}}
	got[7] = samples{c: []float64{15.5}}
	assert.Equal(t, "| what | command | C program | beside it | ratio: median (least to most) | goal | met |\n|---|---|---|---|---|---|---|\n"+
		"| latency | `ib_send_lat -R -s 64 -n 20000 HOST` | 8.00 us (7.00 to 9.00) | 8.00 us | 1.00 (0.90 to 1.20) | at most 1.15 | yes |\n"+
		"| Sends of 64 octets | `ib_send_bw -R -s 64 -n 1000000 HOST` | 1.50 M/s (1.00 to 2.00) | 4.00 M/s | 0.38 (0.25 to 0.50) | at least 0.5 | no |\n"+
		"| first `ibv_open_device` | `./measure open` | 15.50 ms (15.50 to 15.50) |  |  | at most 15 ms | no |\n"+
		"\n3 rounds. Linux.\n", benchTable(all, got, 3, "Linux"))
}

// TestPlain: the sides that run by themselves.
func TestPlain(t *testing.T) {
	o := options{rnic: "/b/rnic"}
	assert.Equal(t, []string{"sh", "-c", "exec /b/rnic perf server h"}, goals()[0].beside.words(server, "h", "", o))
	assert.Equal(t, "exec /b/rnic perf send lat --size 64 --json h", goals()[0].beside.words(client, "h", "", o)[2])
}
