package prometheus_test

import (
	"testing"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/lab/rnictest"
	"github.com/softrnic/softrnic/stats/prometheus"
	"github.com/softrnic/softrnic/verbs"
)

// TestCollector: a registry takes the collector, and a scrape has the sums and, if asked for, each
// queue's.
func TestCollector(t *testing.T) {
	x, y := rnictest.Pair(t, rnictest.Config{CM: cm.Config{Model: cm.ClientServer}})
	_, sink := y.Memory(100)
	_, source := x.Memory(100)
	x.Post(verbs.Request{Op: verbs.OpWrite, SGL: source.All(), Remote: sink.Remote(0)})
	x.Wait()
	for _, each := range []bool{false, true} {
		r := prom.NewPedanticRegistry() // which compares with what Describe says
		require.NoError(t, r.Register(prometheus.New(prometheus.Config{PerQueue: each}, x.NIC, y.NIC)))
		families, err := r.Gather()
		require.NoError(t, err)
		values := map[string]float64{}
		count := map[string]int{}
		for _, f := range families {
			assert.NotEmpty(t, f.GetHelp())
			for _, m := range f.GetMetric() {
				name := f.GetName()
				count[name]++
				for _, l := range m.GetLabel() {
					if l.GetName() != "rnic" {
						name += " " + l.GetName() + "=" + l.GetValue()
					} else if l.GetValue() == x.NIC.ID().String() {
						name += " x"
					}
				}
				values[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
		assert.EqualValues(t, 100, values["softrnic_out_octets_total op=write x"], "%v", values)
		assert.EqualValues(t, 1, values["softrnic_iwOutRdmaWrites_total x"])
		assert.EqualValues(t, 1, values["softrnic_connects_total x"])
		assert.EqualValues(t, 1, values["softrnic_qp x"])
		assert.Equal(t, 2, count["softrnic_send_queue_max"])
		queues := 0
		if each {
			queues = 2
		}
		assert.Equal(t, queues, count["softrnic_qp_send_queue"])
		assert.Equal(t, queues, count["softrnic_each_cq_queue"])
	}
}
