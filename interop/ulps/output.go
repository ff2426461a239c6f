//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
)

// output is what a program prints.
type output struct {
	mu   sync.Mutex
	more *sync.Cond
	b    bytes.Buffer
	over bool
}

func newOutput() *output {
	o := &output{}
	o.more = sync.NewCond(&o.mu)
	return o
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.more.Broadcast()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// end says that nothing more is printed.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	o.more.Broadcast()
}

// await waits until text has been printed.
func (o *output) await(ctx context.Context, text string) error {
	stop := context.AfterFunc(ctx, o.end)
	defer stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for !strings.Contains(o.b.String(), text) {
		if o.over {
			return errors.New("the program did not say " + text)
		}
		o.more.Wait()
	}
	return nil
}
