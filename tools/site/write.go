package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"strings"
)

//go:embed assets
var assets embed.FS

var layout = template.Must(template.ParseFS(assets, "assets/page.html"))

// marker is a file of ours in a folder that may be emptied.
const marker = "search.js"

// write makes the folder anew.
func (s *site) write(out string, live bool) error {
	entries, err := os.ReadDir(out)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(out, marker)); err != nil {
			return fmt.Errorf("%s is not empty and no site: name another folder, or remove it", out)
		}
		if err := os.RemoveAll(out); err != nil {
			return err
		}
	}
	// The index first: a build that is broken off leaves a folder that the next may empty.
	if err := s.writeIndex(out); err != nil {
		return err
	}
	for _, name := range []string{"style.css", "site.js"} {
		raw, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return err
		}
		if err := put(out, name, raw); err != nil {
			return err
		}
	}
	for name, source := range s.assets {
		raw, err := s.sourceOf(source)
		if err != nil {
			return err
		}
		if err := put(out, name, raw); err != nil {
			return err
		}
	}
	for _, p := range s.pages {
		if live && len(p.live) > 0 {
			if err := s.runLive(out, p); err != nil {
				return err
			}
		}
		if err := s.writePage(out, p); err != nil {
			return err
		}
	}
	return nil
}

func put(out, name string, raw []byte) error {
	file := filepath.Join(out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o644)
}

// writePage puts a page into the layout.
func (s *site) writePage(out string, p *page) error {
	root := strings.TrimSuffix(relative(p.out, "style.css"), "style.css")
	side, name := s.nav, "All documents"
	if section(p.out) == "api" {
		side, name = s.apiNav, "All packages"
	}
	nav := make([]navGroup, len(side))
	for i, g := range side {
		nav[i].Title = g.Title
		for _, item := range g.Items {
			nav[i].Items = append(nav[i].Items, navItem{item.Title, relative(p.out, item.Out), item.Out == p.out})
		}
	}
	source := ""
	if p.source != "" {
		source = forge + "/blob/main/" + p.source
	}
	var b strings.Builder
	err := layout.Execute(&b, map[string]any{
		"Page": p, "Title": p.title, "Body": p.body, "TOC": p.toc, "Root": root, "Nav": nav, "Side": name, "Source": source,
		"Landing": p.out == "index.html", "Forge": forge, "Section": section(p.out),
	})
	if err != nil {
		return err
	}
	return put(out, p.out, []byte(b.String()))
}

// section says which link of the header a page belongs to.
func section(out string) string {
	switch {
	case out == "index.html":
		return ""
	case path.Dir(out) == "docs/start":
		return "start"
	case strings.HasPrefix(out, "api/"):
		return "api"
	case out == "docs/live.html", out == "docs/benchmarks.html":
		return path.Base(out)
	}
	return "docs"
}

// writeIndex writes what search looks through: a script, since a page that was opened as a file may load no other
// file. A row is page, name in it, title of the page, heading, text.
func (s *site) writeIndex(out string) error {
	var rows [][5]string
	for _, p := range s.pages {
		for _, part := range p.parts {
			rows = append(rows, [5]string{p.out, part.id, p.title, part.title, strings.Join(strings.Fields(part.text), " ")})
		}
	}
	raw, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	return put(out, marker, append(append([]byte("window.searchIndex = "), raw...), ";\n"...))
}
