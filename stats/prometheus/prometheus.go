// Package prometheus collects the counters of RNICs for Prometheus. Nothing else of this module imports the client
// library.
//
//	registry.MustRegister(prometheus.New(prometheus.Config{}, nic))
package prometheus

import (
	"cmp"
	"strconv"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/softrnic/softrnic/stats"
	"github.com/softrnic/softrnic/verbs"
)

// Config is what a collector gives. The zero value gives the sums over each RNIC.
type Config struct {
	// Namespace begins the name of every metric; empty stands for softrnic.
	Namespace string
	// PerQueue gives the counters of each queue pair too, as NAMESPACE_qp_..., and of each CQ and S-RQ, as NAMESPACE_each_....
	// A series ends with its queue: what that has counted is in the sums.
	PerQueue bool
}

// collector gives the metrics of some RNICs.
type collector struct {
	nics     []*verbs.RNIC
	perQueue bool
	rnic     metrics[verbs.RNICStats]
	qps, qp  metrics[verbs.QPStats] // of all, of each
	cqs, cq  metrics[verbs.CQStats]
	srqs     metrics[verbs.SRQStats]
	srq      metrics[verbs.SRQStats]
}

// New makes a collector of the counters of RNICs, which it asks at each scrape. Counters are
// NAMESPACE_NAME_total, gauges NAMESPACE_NAME; package stats has the tables of names. The label rnic is the RNIC's ID.
func New(c Config, nics ...*verbs.RNIC) prom.Collector {
	ns := cmp.Or(c.Namespace, "softrnic")
	return &collector{
		nics: nics, perQueue: c.PerQueue,
		rnic: describe(ns, stats.RNICCounters, "rnic"),
		qps:  describe(ns, stats.QPCounters, "rnic"),
		cqs:  describe(ns, stats.CQCounters, "rnic"),
		srqs: describe(ns, stats.SRQCounters, "rnic"),
		qp:   describe(ns+"_qp", stats.QPCounters, "rnic", "qp"),
		cq:   describe(ns+"_each", stats.CQCounters, "rnic", "cq"),
		srq:  describe(ns+"_each", stats.SRQCounters, "rnic", "srq"),
	}
}

// metrics are a table of counters with their descriptions.
type metrics[T any] []metric[T]

type metric[T any] struct {
	*stats.Counter[T]
	desc *prom.Desc
	kind prom.ValueType
}

func describe[T any](prefix string, table []stats.Counter[T], labels ...string) (list metrics[T]) {
	for i := range table {
		c := &table[i]
		name, kind := prefix+"_"+c.Name+"_total", prom.CounterValue
		if c.Gauge {
			name, kind = prefix+"_"+c.Name, prom.GaugeValue
		}
		all := labels
		if c.Label != "" {
			all = append(all[:len(all):len(all)], c.Label)
		}
		list = append(list, metric[T]{c, prom.NewDesc(name, c.Help, all, nil), kind})
	}
	return list
}

func (list metrics[T]) describe(ch chan<- *prom.Desc) {
	for _, m := range list {
		ch <- m.desc
	}
}

func (list metrics[T]) collect(ch chan<- prom.Metric, s T, labels ...string) {
	for _, m := range list {
		if m.Label == "" {
			ch <- prom.MustNewConstMetric(m.desc, m.kind, float64(m.One(&s)), labels...)
			continue
		}
		for label, n := range m.ByLabel(&s) {
			ch <- prom.MustNewConstMetric(m.desc, m.kind, float64(n), append(labels[:len(labels):len(labels)], label)...)
		}
	}
}

// Describe implements prom.Collector.
func (c *collector) Describe(ch chan<- *prom.Desc) {
	c.rnic.describe(ch)
	c.qps.describe(ch)
	c.cqs.describe(ch)
	c.srqs.describe(ch)
	if c.perQueue {
		c.qp.describe(ch)
		c.cq.describe(ch)
		c.srq.describe(ch)
	}
}

// Collect implements prom.Collector.
func (c *collector) Collect(ch chan<- prom.Metric) {
	for _, nic := range c.nics {
		id, all := nic.ID().String(), nic.Stats()
		c.rnic.collect(ch, all, id)
		c.qps.collect(ch, all.QP, id)
		c.cqs.collect(ch, all.CQ, id)
		c.srqs.collect(ch, all.SRQ, id)
		if !c.perQueue {
			continue
		}
		for _, q := range nic.QPs() {
			c.qp.collect(ch, q.Stats(), id, number(q.ID()))
		}
		for _, q := range nic.CQs() {
			c.cq.collect(ch, q.Stats(), id, number(q.ID()))
		}
		for _, q := range nic.SRQs() {
			c.srq.collect(ch, q.Stats(), id, number(q.ID()))
		}
	}
}

func number[N ~uint32](n N) string { return strconv.FormatUint(uint64(n), 10) }
