package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manCommand is for those who package the program, and hidden from others.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the man pages into a folder",
		Example: "  enqueue man /usr/local/share/man/man1",
		Hidden:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("into which folder? Name one")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := c.Root()
			root.DisableAutoGenTag = true // the same program writes the same pages
			epoch := time.Unix(0, 0).UTC()
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "Outlast", Manual: "Outlast", Date: &epoch}, args[0])
		},
	}
}
