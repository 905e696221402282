package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/internal/version"
)

// versionInfo is which program this is.
type versionInfo struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Schema   int    `json:"schema"` // of the store
}

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version of the program and of the store's schema",
		Example: "  enqueue version -o json",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			v := versionInfo{
				Version: version.String(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Schema: store.Schema,
			}
			return a.print(v, func() error {
				_, err := fmt.Fprintf(a.out, "enqueue %s (%s, %s, store schema %d)\n", v.Version, v.Go, v.Platform, v.Schema)
				return err
			})
		},
	}
}
