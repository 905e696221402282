package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/adrg/xdg"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

const (
	envPrefix  = "OUTLAST_"
	configFlag = "config"
	configEnv  = "OUTLAST_CONFIG"
)

// AddFlags adds the flags of all settings to a command of the worker.
func AddFlags(flags *pflag.FlagSet, defaults Config) {
	flags.String(configFlag, "", "configuration file (default: config.yaml in the user's configuration directory)")
	for _, s := range settings() {
		if s.noFlag {
			continue
		}
		switch f := s.at(&defaults).(type) {
		case *string:
			flags.String(s.flag(), *f, s.usage)
		case *RedisURL:
			flags.String(s.flag(), string(*f), s.usage)
		case *bool:
			flags.Bool(s.flag(), *f, s.usage)
		case *int:
			flags.Int(s.flag(), *f, s.usage)
		case *Bytes:
			flags.String(s.flag(), f.String(), s.usage)
		case *time.Duration:
			flags.Duration(s.flag(), *f, s.usage)
		case *[]string:
			flags.StringSlice(s.flag(), *f, s.usage)
		case *[]RedisURL:
			flags.StringSlice(s.flag(), nil, s.usage) // none by default: a URL may hold a password
		}
	}
}

// layer is one place that settings come from.
type layer struct {
	values *koanf.Koanf
	origin func(setting[Config]) string
}

// Load reads the settings: flags over environment over file over defaults. flags may be nil, and are those of AddFlags or
// some of them, perhaps among others. environ is what os.Environ returns. All mistakes are reported at once.
func Load(defaults Config, flags *pflag.FlagSet, environ []string) (Config, error) {
	fromEnv, err := envLayer(environ)
	if err != nil {
		return Config{}, err
	}
	fromFlags, err := flagLayer(flags)
	if err != nil {
		return Config{}, err
	}
	fromFile, err := fileLayer(flags, environ)
	if err != nil {
		return Config{}, err
	}

	c := defaults.clone()
	c.origins = map[string]string{}
	var mistakes []error
	for _, l := range []layer{fromFile, fromEnv, fromFlags} { // later ones win
		mistakes = append(mistakes, l.apply(&c))
	}
	if err := errors.Join(mistakes...); err != nil {
		return Config{}, err
	}
	if err := c.complete(); err != nil {
		return Config{}, err
	}
	if err := c.validate(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// apply sets what the layer holds.
func (l layer) apply(c *Config) error {
	var mistakes []error
	for _, s := range settings() {
		value := l.values.Get(s.key)
		if value == nil {
			continue
		}
		if err := assign(s.at(c), value); err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s (%s): %w", s.key, l.origin(s), err))
			continue
		}
		c.origins[s.key] = l.origin(s)
	}
	return errors.Join(mistakes...)
}

// envLayer reads the environment. Other variables with our prefix are left alone: those that a job finds on its
// node have it, too, and a job may well submit jobs.
func envLayer(environ []string) (layer, error) {
	known := map[string]string{}
	for _, s := range settings() {
		known[s.env()] = s.key
	}
	k := koanf.New(".")
	err := k.Load(env.Provider(".", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			if value == "" {
				return "", nil
			}
			return known[name], value
		},
	}), nil)
	if err != nil {
		return layer{}, fmt.Errorf("read the environment: %w", err)
	}
	return layer{k, func(s setting[Config]) string { return "environment variable " + s.env() }}, nil
}

// flagLayer reads the flags that were given.
func flagLayer(flags *pflag.FlagSet) (layer, error) {
	l := layer{koanf.New("."), func(s setting[Config]) string { return "flag --" + s.flag() }}
	if flags == nil {
		return l, nil
	}
	known := map[string]string{}
	for _, s := range settings() {
		known[s.flag()] = s.key
	}
	err := l.values.Load(posflag.ProviderWithFlag(flags, ".", nil, func(f *pflag.Flag) (string, any) {
		return known[f.Name], posflag.FlagVal(flags, f)
	}), nil)
	if err != nil {
		return layer{}, fmt.Errorf("read the flags: %w", err)
	}
	return l, nil
}

// fileLayer reads the configuration file. One that was named must be there, the default one need not.
func fileLayer(flags *pflag.FlagSet, environ []string) (layer, error) {
	path, named := filePath(flags, environ)
	l := layer{koanf.New("."), func(setting[Config]) string { return "file " + path }}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return l, nil
	}
	if err != nil {
		return layer{}, fmt.Errorf("read the configuration: %w", err)
	}
	values, err := parseFile(path, text)
	if err != nil {
		return layer{}, err
	}
	if err := l.values.Load(confmap.Provider(values, "."), nil); err != nil {
		return layer{}, fmt.Errorf("read the configuration %s: %w", path, err)
	}
	return l, nil
}

// filePath is where the configuration is, and whether somebody said so.
func filePath(flags *pflag.FlagSet, environ []string) (path string, named bool) {
	if flags != nil {
		if f := flags.Lookup(configFlag); f != nil && f.Value.String() != "" {
			return f.Value.String(), true
		}
	}
	if path := lookup(environ, configEnv); path != "" {
		return path, true
	}
	return filepath.Join(xdg.ConfigHome, "outlast", "config.yaml"), false
}

// lookup returns the value of a variable. As in the system, the last one of a name counts.
func lookup(environ []string, name string) string {
	value := ""
	for _, entry := range environ {
		if n, v, _ := strings.Cut(entry, "="); n == name {
			value = v
		}
	}
	return value
}
