// Package info is `rnic info`: what this RNIC offers.
package info

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/verbs"
)

// Command makes `rnic info`.
func Command() *cobra.Command {
	var asJSON, blocks bool
	var list devices
	cmd := &cobra.Command{
		Use:   "info",
		Short: "Show what this RNIC offers",
		Long: `Show the attributes that the Query RNIC verb returns: limits of every resource, and which options there are.

With --devices: the devices that a C program would find under rnic run with the same --device and --devices.`,
		Example: `  rnic info
  rnic info --devices --device mlx5_0=eth0,numa=0 --device mlx5_1=eth1,numa=1
  rnic info --devices=FILE`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list.asked(cmd) {
				return list.print(cmd.OutOrStdout(), asJSON)
			}
			var c verbs.Config
			if blocks {
				c.Mode = verbs.BlockMode
			}
			attributes, err := cli.QueryRNIC(c)
			if err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), jsonAttributes(attributes))
			}
			return printAttributes(cmd.OutOrStdout(), attributes)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&blocks, "block-mode", false, "open the RNIC in block mode instead of page mode")
	list.addTo(cmd.Flags())
	return cmd
}

// printAttributes lists the fields of a struct, one a line, each under its name
// in words. A new attribute of the RNIC so appears here by itself.
func printAttributes(w io.Writer, attributes any) error {
	list, width := flat(attributes), 0
	for _, f := range list {
		width = max(width, len(f.name))
	}
	for _, f := range list {
		if _, err := fmt.Fprintf(w, "%-*s  %s\n", width, f.name, cell(f.value)); err != nil {
			return err
		}
	}
	return nil
}

// field is a field of a struct, its name in words.
type field struct {
	name  string
	value any
}

// flat lists the fields of a struct, those of a struct in it in its place.
func flat(attributes any) (list []field) {
	v := reflect.ValueOf(attributes)
	for i := range v.NumField() {
		f := v.Field(i).Interface()
		if v.Field(i).Kind() == reflect.Struct {
			list = append(list, flat(f)...)
			continue
		}
		list = append(list, field{words(v.Type().Field(i).Name), f})
	}
	return list
}

// cell writes one value: numbers with their digits in groups, sizes short.
func cell(v any) string {
	switch v := v.(type) {
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case int:
		if v >= 0 {
			return cli.Grouped(uint64(v))
		}
	case uint64:
		return cli.Grouped(v)
	case []uint64:
		sizes := make([]string, len(v))
		for i, n := range v {
			sizes[i] = shortSize(n)
		}
		return strings.Join(sizes, " ")
	}
	return fmt.Sprint(v)
}

// shortSize writes a number of octets with the largest unit that divides it.
func shortSize(n uint64) string {
	units := []string{"", "K", "M", "G", "T"}
	i := 0
	for ; n > 0 && n%1024 == 0 && i < len(units)-1; i++ {
		n /= 1024
	}
	return fmt.Sprint(n) + units[i]
}

// jsonAttributes holds the fields of a struct under their names in snake case,
// as all JSON of this program has them.
func jsonAttributes(attributes any) map[string]any {
	fields := map[string]any{}
	for _, f := range flat(attributes) {
		fields[strings.ToLower(strings.ReplaceAll(f.name, " ", "_"))] = f.value
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
