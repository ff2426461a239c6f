package main

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/verbs"
)

func newInfoCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "info",
		Short: "Show what this RNIC offers",
		Long:  "Show the attributes that the Query RNIC verb returns: limits of every resource, and which options there are.",
		Args:  exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			nic, err := verbs.Open(verbs.Config{})
			if err != nil {
				return fmt.Errorf("opening the RNIC: %w", err)
			}
			defer nic.Close()
			attributes := nic.Query()
			if asJSON {
				return printJSON(cmd.OutOrStdout(), jsonAttributes(attributes))
			}
			return printAttributes(cmd.OutOrStdout(), attributes)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printAttributes lists the fields of a struct, one a line, each under its name
// in words. A new attribute of the RNIC so appears here by itself.
func printAttributes(w io.Writer, attributes any) error {
	v := reflect.ValueOf(attributes)
	width := 0
	for i := range v.NumField() {
		width = max(width, len(words(v.Type().Field(i).Name)))
	}
	for i := range v.NumField() {
		_, err := fmt.Fprintf(w, "%-*s  %v\n", width, words(v.Type().Field(i).Name), v.Field(i).Interface())
		if err != nil {
			return err
		}
	}
	return nil
}

// jsonAttributes holds the fields of a struct under their names in snake case,
// as all JSON of this program has them.
func jsonAttributes(attributes any) map[string]any {
	v := reflect.ValueOf(attributes)
	fields := make(map[string]any, v.NumField())
	for i := range v.NumField() {
		name := strings.ToLower(strings.ReplaceAll(words(v.Type().Field(i).Name), " ", "_"))
		fields[name] = v.Field(i).Interface()
	}
	return fields
}

// words splits a Go name: MaxSendSGEs is "max send SGEs".
func words(name string) string {
	runes := []rune(name)
	lower := func(i int) bool { return i >= 0 && i < len(runes) && unicode.IsLower(runes[i]) }
	// The s of a plural such as QPs belongs to the abbreviation.
	plural := func(i int) bool {
		return lower(i) && runes[i] == 's' && i >= 2 && !lower(i-1) && !lower(i-2) && !lower(i+1)
	}
	var b strings.Builder
	for i, r := range runes {
		starts := lower(i+1) && !plural(i+1) // a word that is not an abbreviation
		if !lower(i) && i > 0 && (starts || lower(i-1)) {
			b.WriteByte(' ')
		}
		if starts {
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
