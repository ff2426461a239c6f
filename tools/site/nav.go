package main

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// decisions is the folder that has a page made for it: the forge lists it by itself.
const decisions = "docs/decisions"

type navGroup struct {
	Title string
	Items []navItem
}

type navItem struct {
	Title, Out string
	Here       bool
}

// readNav takes the order of the pages from docs/README.md, which has to list each.
func (s *site) readNav() error {
	src, err := s.sourceOf("docs/README.md")
	if err != nil {
		return err
	}
	listed := map[string]bool{}
	s.nav = []navGroup{{Title: "Documents"}} // of what stands above the first heading
	var problems []error
	err = ast.Walk(markdown.Parser().Parse(text.NewReader(src)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 2 {
				s.nav = append(s.nav, navGroup{Title: textOf(n, src)})
			}
		case *ast.Link:
			to, _, _ := strings.Cut(string(n.Destination), "#")
			file := path.Join("docs", to)
			out := outOf(file)
			if file == decisions {
				out = decisions + "/index.html"
			}
			p := s.byOut[out]
			if p == nil || listed[p.out] {
				break // a link that leads nowhere is the page's own problem
			}
			listed[p.out] = true
			last := &s.nav[len(s.nav)-1]
			last.Items = append(last.Items, navItem{Title: shortTitle(p.title), Out: p.out})
		}
		return ast.WalkContinue, nil
	})
	problems = append(problems, err)
	for _, p := range s.pages {
		document := strings.HasPrefix(p.source, "docs/") && path.Dir(p.source) != decisions && p.source != "docs/README.md"
		if document && !listed[p.out] {
			problems = append(problems, fmt.Errorf("docs/README.md does not list %s", p.source))
		}
	}
	return errors.Join(problems...)
}

// shortTitle is a title as far as its colon.
func shortTitle(title string) string {
	short, _, _ := strings.Cut(title, ":")
	return short
}

// addDecisions makes the list of the decisions.
func (s *site) addDecisions() error {
	var b bytes.Buffer
	b.WriteString("<h1>Decisions</h1>\n<p>What the specifications leave open, and what was chosen.</p>\n<ul>\n")
	var list []*page
	for _, p := range s.pages {
		if path.Dir(p.source) == decisions {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *page) int { return strings.Compare(a.source, b.source) })
	for _, p := range list {
		fmt.Fprintf(&b, "<li><a href=\"%s\">%s</a></li>\n", path.Base(p.out), template.HTMLEscapeString(p.title))
	}
	b.WriteString("</ul>\n")
	s.add(&page{out: decisions + "/index.html", title: "Decisions", body: template.HTML(b.String()),
		parts: []part{{title: "Decisions"}}})
	return nil
}
