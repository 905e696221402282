package main

import (
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/config"
	"github.com/outlast-dev/outlast/internal/didyoumean"
	"github.com/outlast-dev/outlast/internal/render"
)

func configCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "config",
		Short:   "Show the settings",
		Example: "  enqueue config view",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(&cobra.Command{
		Use:   "view [KEY...]",
		Short: "Show settings, their values, and what set them",
		Long: `Show all settings, or some, as they hold for a program that is started here, and what set each: a flag, else a
variable of the environment, else the configuration file, else the default. Secrets are not shown.`,
		Example: `  enqueue config view
  enqueue config view redis archive
  enqueue config view -o json | jq -r '.[] | select(.origin != "default").key'`,
		RunE: func(_ *cobra.Command, args []string) error { return a.viewConfig(args) },
	})
	return c
}

// settingNames are the keys of all settings.
func settingNames() []string {
	var names []string
	for _, v := range config.Defaults().View() {
		names = append(names, v.Key)
	}
	return names
}

func (a *app) viewConfig(keys []string) error {
	for _, key := range keys {
		if names := settingNames(); !slices.Contains(names, key) {
			if near := didyoumean.Nearest(key, names); near != "" {
				return usagef("there is no setting %q: did you mean %s?", key, near)
			}
			return usagef("there is no setting %q", key)
		}
	}
	cfg, err := config.Load(config.Defaults(), a.settings, os.Environ())
	if err != nil {
		return &usageError{err: err}
	}
	values := cfg.View()
	if url, err := findRedis(cfg); err == nil && cfg.Redis == "" {
		for i := range values {
			if values[i].Key == "redis" {
				values[i].Value, values[i].Origin = url.String(), "worker dev in "+cfg.Home
			}
		}
	}
	if len(keys) > 0 {
		values = slices.DeleteFunc(values, func(v config.Value) bool { return !slices.Contains(keys, v.Key) })
	}
	return a.print(values, func() error {
		columns := []render.Column{{Title: "KEY"}, {Title: "VALUE", Min: 16}, {Title: "SET BY", Min: 12, Drop: 1}}
		if a.wide() {
			columns = append(columns, render.Column{Title: "VARIABLE"}, render.Column{Title: "MEANING"})
		}
		rows := make([][]string, len(values))
		for i, v := range values {
			by := render.Text(v.Origin)
			if v.Origin == "default" {
				by = a.onOut.dim(by)
			}
			rows[i] = []string{v.Key, render.Text(v.String()), by}
			if a.wide() {
				rows[i] = append(rows[i], v.Env, v.Usage)
			}
		}
		return a.table(columns, rows)
	})
}
