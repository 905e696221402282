package main

import (
	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/spec"
)

func schemaCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of job files",
		Long: `Print the JSON Schema of job files, for editors that complete and check as one types.

With the YAML language server, this line at the start of a job file is enough:
# yaml-language-server: $schema=FILE`,
		Example: "  enqueue schema > job.schema.json",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(spec.Schema())
			return err
		},
	}
}
