package main

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// forge is where files are shown that are no pages: sources, and folders of them.
const forge = "https://github.com/softrnic/softrnic"

// page is one page of the site.
type page struct {
	source string // its Markdown file, from the root, with slashes; empty if it comes from code
	out    string // the file that it becomes, from the root of the site
	title  string
	body   template.HTML
	toc    []heading // its headings of the second and third level
	parts  []part    // what search finds
	ids    map[string]bool
	links  []link    // to other pages of the site
	live   []liveRun // commands to run, in order
}

type heading struct {
	Level    int
	ID, Text string
}

// part is a piece of a page under one heading.
type part struct {
	id, title, text string
}

// link is a link inside the site, to be checked when all pages are known.
type link struct {
	to, id string // the page's out, and a name in it
	said   string // as the source has it
}

// site is everything that is to be written.
type site struct {
	root   string
	pages  []*page
	byFile map[string]*page  // by source
	byOut  map[string]*page  // by out
	assets map[string]string // pictures and the like: file of the site to source, both from their roots
	nav    []navGroup        // of the documents
	apiNav []navGroup        // of the packages
}

// readSite reads every Markdown page: those of the root, and those of docs and below.
func readSite(root string) (*site, error) {
	s := &site{root: root, byFile: map[string]*page{}, byOut: map[string]*page{}, assets: map[string]string{}}
	files, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(file) == ".md" {
			files = append(files, file)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return nil, err
		}
		s.add(&page{source: filepath.ToSlash(rel), out: outOf(filepath.ToSlash(rel))})
	}
	if s.byFile["README.md"] == nil || s.byFile["docs/README.md"] == nil {
		return nil, fmt.Errorf("%s has no README.md and docs/README.md: give the project's folder by -root", root)
	}
	// What links are resolved with is known only now that all pages are.
	var problems []error
	for _, p := range slices.Clone(s.pages) {
		problems = append(problems, s.read(p))
	}
	problems = append(problems, s.addDecisions(), s.readNav())
	return s, errors.Join(problems...)
}

func (s *site) add(p *page) {
	p.ids = map[string]bool{}
	s.pages = append(s.pages, p)
	s.byOut[p.out] = p
	if p.source != "" {
		s.byFile[p.source] = p
	}
}

// outOf is the file that a Markdown file becomes. The folders stay as they are, so that what links look like in the
// sources is what they look like in the site.
func outOf(source string) string {
	dir, name := path.Split(source)
	if name == "README.md" {
		return dir + "index.html"
	}
	return dir + strings.TrimSuffix(name, ".md") + ".html"
}

// relative is the link from a file of the site to another.
func relative(from, to string) string {
	rel, err := filepath.Rel(filepath.FromSlash(path.Dir("/"+from)), filepath.FromSlash("/"+to))
	if err != nil {
		panic(err) // both begin with a slash
	}
	return filepath.ToSlash(rel)
}

// resolve is what a link of a page becomes in the site.
func (s *site) resolve(p *page, dest string) (string, error) {
	if scheme, _, ok := strings.Cut(dest, ":"); ok && !strings.ContainsAny(scheme, "/#?") {
		return dest, nil
	}
	file, id, _ := strings.Cut(dest, "#")
	target := p.source
	if file != "" {
		target = path.Join(path.Dir(p.source), file)
	}
	if strings.HasPrefix(target, "..") {
		return "", fmt.Errorf("%s: the link to %s leaves the project", p.source, dest)
	}
	to := s.byFile[target]
	if to == nil {
		to = s.byFile[path.Join(target, "README.md")]
	}
	if to == nil && target == decisions {
		p.links = append(p.links, link{to: decisions + "/index.html", said: dest})
		return relative(p.out, decisions+"/index.html"), nil
	}
	if to != nil {
		p.links = append(p.links, link{to: to.out, id: id, said: dest})
		if id != "" {
			id = "#" + id
		}
		if to == p && id != "" {
			return id, nil
		}
		return relative(p.out, to.out) + id, nil
	}
	info, err := os.Stat(filepath.Join(s.root, filepath.FromSlash(target)))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: the link to %s leads nowhere", p.source, dest)
	case info.IsDir():
		return forge + "/tree/main/" + target, nil
	case slices.Contains([]string{".png", ".svg", ".txt", ".json"}, path.Ext(target)):
		s.assets[target] = target
		return relative(p.out, target), nil
	}
	return forge + "/blob/main/" + target, nil
}

// check says which links lead to no page, or to no heading of one.
func (s *site) check() error {
	var problems []error
	for _, p := range s.pages {
		for _, l := range p.links {
			to := s.byOut[l.to]
			if to == nil || l.id != "" && !to.ids[l.id] {
				problems = append(problems, fmt.Errorf("%s: the link to %s leads nowhere", cmp.Or(p.source, p.out), l.said))
			}
		}
	}
	return errors.Join(problems...)
}
