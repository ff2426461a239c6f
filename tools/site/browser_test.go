//go:build chromium

package main

import (
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

//go:embed look_test.js
var look string

// perPage bounds what is done with one page: the conformance report is long, and machines are busy.
const perPage = time.Minute

// seen is what look_test.js tells of a page.
type seen struct {
	Links  []string `json:"links"`
	IDs    []string `json:"ids"`
	Broken []string `json:"broken"` // pictures that did not load
	Wide   string   `json:"wide"`   // what is wider than the window
	Faint  []string `json:"faint"`  // text that is hard to read
}

// browser is a headless Chromium with one tab, and what went wrong in it.
type browser struct {
	ctx    context.Context
	mu     sync.Mutex
	errors []string // guarded by mu
}

// siteFolder is what `make site` has built.
func siteFolder(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SOFTRNIC_TEST_SITE")
	if dir == "" {
		t.Fatal("SOFTRNIC_TEST_SITE has to be the folder of a site that is built: run make site-test")
	}
	return dir
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("no Chromium (Debian: apt-get install chromium): %v", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.Flag("allow-file-access-from-files", false))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // its sandbox refuses root
	}
	alloc, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	b := &browser{ctx: ctx}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	return b
}

// hear notes what the console says of errors, and what is asked of other hosts.
func (b *browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			b.errors = append(b.errors, e.Entry.Text+" "+e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		b.errors = append(b.errors, fmt.Sprintf("%+v", e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			b.errors = append(b.errors, fmt.Sprintf("console.error: %v", e.Args))
		}
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, "file:") && !strings.HasPrefix(u, "data:") {
			b.errors = append(b.errors, "asks another host: "+u)
		}
	}
}

// wrong takes what has gone wrong since it was last asked.
func (b *browser) wrong() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.errors
	b.errors = nil
	return e
}

// do has the browser do something, each within perPage.
func (b *browser) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	for _, a := range actions {
		ask(t, b, a)
	}
}

// ask has the browser tell something.
func ask[T any](t *testing.T, b *browser, a chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, perPage)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// as sets the window's width and the colours that the user prefers.
func (b *browser) as(t *testing.T, width int64, scheme string) {
	t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: 900, DeviceScaleFactor: 1, Mobile: width < 800,
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func address(file string) string { return (&url.URL{Scheme: "file", Path: file}).String() }

// TestPages looks at every page: at 400 and 1280 pixels, light and dark.
func TestPages(t *testing.T) {
	dir, b := siteFolder(t), newBrowser(t)
	found := map[string]seen{} // by address
	err := filepath.WalkDir(dir, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".html" {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			found[address(file)] = b.look(t, address(file))
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 50 {
		t.Fatalf("the site has %d pages, too few to be whole", len(found))
	}
	ids := map[string]map[string]bool{}
	for at, s := range found {
		ids[at] = map[string]bool{"": true}
		for _, id := range s.IDs {
			ids[at][id] = true
		}
	}
	links := 0
	for at, s := range found {
		for _, to := range s.Links {
			u, err := url.Parse(to)
			if err != nil || u.Scheme != "file" {
				continue
			}
			links++
			id := u.Fragment
			u.Fragment = ""
			if names, ok := ids[u.String()]; ok {
				if !names[id] {
					t.Errorf("%s: %s leads to no such place", at, to)
				}
			} else if _, err := os.Stat(u.Path); err != nil {
				t.Errorf("%s: %s leads nowhere", at, to)
			}
		}
	}
	t.Logf("%d pages, %d links inside the site", len(found), links)
}

// look opens a page in four ways, and says what is wrong with it.
func (b *browser) look(t *testing.T, at string) (last seen) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.as(t, 1280, scheme)
		b.do(t, chromedp.Navigate(at))
		for _, width := range []int64{1280, 400} {
			b.as(t, width, scheme)
			s := ask(t, b, chromedp.Evaluate[seen](look))
			if s.Wide != "" {
				t.Errorf("at %d pixels it scrolls sideways: %s", width, s.Wide)
			}
			for _, f := range s.Faint {
				t.Errorf("%s, at %d pixels: %s", scheme, width, f)
			}
			for _, src := range s.Broken {
				t.Errorf("the picture %s does not load", src)
			}
			last = s
		}
	}
	for _, e := range b.wrong() {
		t.Error(e)
	}
	return last
}

// TestTheme: the button turns one into the other, and the next page remembers.
func TestTheme(t *testing.T) {
	dir, b := siteFolder(t), newBrowser(t)
	const ground = `getComputedStyle(document.body).backgroundColor`
	open := func(name string) string {
		b.do(t, chromedp.Navigate(address(filepath.Join(dir, name))))
		return ask(t, b, chromedp.Evaluate[string](ground))
	}
	b.as(t, 1280, "light")
	light := open("index.html")
	b.do(t, chromedp.Click(chromedp.CSS("#theme")))
	dark := ask(t, b, chromedp.Evaluate[string](ground))
	if light == dark {
		t.Errorf("both are %s", light)
	}
	if got := open("docs/tutorial.html"); got != dark {
		t.Errorf("the next page is %s, not %s", got, dark)
	}
}

// TestSearch: words are found, from a page at the top and from one below, and the first hit has the word.
func TestSearch(t *testing.T) {
	dir, b := siteFolder(t), newBrowser(t)
	b.as(t, 1280, "light")
	for _, tt := range []struct{ from, word, first string }{
		{"index.html", "MULPDU", "api/mpa"},
		{"docs/start/c.html", "glossary", "docs/glossary"},
		{"api/lab/trace.html", "prometheus", "prometheus"},
	} {
		t.Run(tt.word, func(t *testing.T) {
			b.do(t, chromedp.Navigate(address(filepath.Join(dir, tt.from))),
				chromedp.SendKeys(chromedp.CSS("#q"), tt.word), chromedp.WaitVisible(chromedp.CSS("#results a")))
			text := ask(t, b, chromedp.Text(chromedp.CSS("#results a")))
			href := ask(t, b, chromedp.Evaluate[string](`document.querySelector("#results a").href`))
			if !strings.Contains(strings.ToLower(text), strings.ToLower(tt.word)) {
				t.Errorf("the first hit is %q", text)
			}
			if !strings.Contains(href, tt.first) {
				t.Errorf("the first hit is on %s, not on %s", href, tt.first)
			}
			b.do(t, chromedp.Navigate(href))
			body := ask(t, b, chromedp.TextContent(chromedp.CSS("main")))
			if !strings.Contains(strings.ToLower(body), strings.ToLower(tt.word)) {
				t.Errorf("%s does not have the word", href)
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		b.do(t, chromedp.Navigate(address(filepath.Join(dir, "index.html"))),
			chromedp.SendKeys(chromedp.CSS("#q"), "xyzzyplugh"), chromedp.WaitVisible(chromedp.CSS("#results li")))
		text := ask(t, b, chromedp.Text(chromedp.CSS("#results")))
		if !strings.Contains(text, "Nothing") {
			t.Errorf("it says %q", text)
		}
	})
	for _, e := range b.wrong() {
		t.Error(e)
	}
}

// TestShots writes pictures of some pages to a folder, to look at: SOFTRNIC_TEST_SHOTS=FOLDER.
func TestShots(t *testing.T) {
	to := os.Getenv("SOFTRNIC_TEST_SHOTS")
	if to == "" {
		return
	}
	dir, b := siteFolder(t), newBrowser(t)
	for _, name := range []string{
		"index.html", "docs/index.html", "docs/start/kubernetes.html", "docs/start/go.html", "docs/security.html",
		"docs/benchmarks.html", "docs/live.html", "api/verbs.html",
	} {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{400, 1280} {
				b.as(t, width, scheme)
				b.do(t, chromedp.Navigate(address(filepath.Join(dir, name))))
				png := ask(t, b, chromedp.CaptureScreenshot())
				file := fmt.Sprintf("%s-%s-%d.png", strings.NewReplacer("/", "-", ".html", "").Replace(name), scheme, width)
				if err := os.WriteFile(filepath.Join(to, file), png, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
