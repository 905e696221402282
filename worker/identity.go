package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/config"
	"github.com/outlast-dev/outlast/internal/seal"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/tasks"
)

// identityEvery is how often a running worker looks whether it has been given a new key.
const identityEvery = 5 * time.Second

// keyholder is the key for secrets of a running worker, and what its deployment seals for.
type keyholder struct {
	ring   *seal.Keyring // nil if this worker goes without
	from   string        // where the keys are, for people
	wanted atomic.Pointer[string]
}

// holdKey reads the key for secrets from where the settings say.
func holdKey(cfg config.Config) (*keyholder, error) {
	k := &keyholder{from: cfg.Identity}
	var err error
	switch {
	case cfg.IdentityKey != "":
		k.from = "OUTLAST_IDENTITY_KEY"
		k.ring, err = seal.NewKeyring(func() (*seal.Identity, error) { return seal.Parse(string(cfg.IdentityKey)) })
	case cfg.Secrets == config.SecretsOff:
	case cfg.Secrets == config.SecretsRequired:
		k.ring, err = seal.NewKeyring(func() (*seal.Identity, error) { return seal.Load(cfg.Identity) })
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: with secrets: required the key must be there: copy that of the other workers, or make the first with `worker identity new`", err)
		}
	default:
		if _, err = seal.LoadOrCreate(cfg.Identity); err == nil { // made at the start only, never in place of one that was lost
			k.ring, err = seal.NewKeyring(func() (*seal.Identity, error) { return seal.Load(cfg.Identity) })
		}
	}
	if err != nil {
		return nil, err
	}
	return k, nil
}

// recipient is the public key to seal for; "" if there is none.
func (k *keyholder) recipient() string {
	if k.ring == nil {
		return ""
	}
	return k.ring.Identity().Recipient()
}

// opener is what opens secrets in acts; nil if nothing does.
func (k *keyholder) opener() tasks.Opener {
	if k.ring == nil {
		return nil
	}
	return k.ring
}

// fit tells whether this worker can open what clients seal.
func (k *keyholder) fit() error {
	wanted := k.wanted.Load()
	if k.ring == nil || wanted == nil || *wanted == "" || k.ring.Identity().Opens(*wanted) {
		return nil
	}
	return fmt.Errorf("the key in %s does not open this deployment's secrets, which are sealed for %s: give every worker the same key", k.from, *wanted)
}

// publish learns what clients seal for. If that is one of this worker's older keys, there was a rotation, and clients are
// told to seal for its newest one. A worker with quite another key changes nothing.
func (k *keyholder) publish(ctx context.Context, st *store.Store, log zerolog.Logger) error {
	if k.ring == nil {
		return nil
	}
	now, err := st.Recipient(ctx)
	if err != nil {
		return err
	}
	if id := k.ring.Identity(); now != id.Recipient() && id.Opens(now) {
		done, err := st.Rotate(ctx, now, id.Recipient())
		if err != nil {
			return err
		}
		if done {
			log.Info().Str("recipient", id.Recipient()).Str("before", now).Msg("secrets are sealed for a new key from now on")
			now = id.Recipient()
		}
	}
	k.wanted.Store(&now)
	return nil
}

// follow takes over a new key while the worker runs, until ctx ends, and learns when others have brought one.
func (k *keyholder) follow(ctx context.Context, st *store.Store, log zerolog.Logger) {
	if k.ring == nil {
		return
	}
	tick := time.NewTicker(identityEvery)
	defer tick.Stop()
	told := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := k.look(ctx, st, log)
		switch {
		case err == nil:
			told = ""
		case ctx.Err() == nil && err.Error() != told: // once, not every few seconds
			told = err.Error()
			log.Warn().Err(err).Msg("cannot look for a new key for secrets; what was known stays")
		}
	}
}

// look reads the keys again. Only keys that have changed since are published: two workers whose files hold the same keys
// in another order would otherwise go on changing the deployment's for ever.
func (k *keyholder) look(ctx context.Context, st *store.Store, log zerolog.Logger) error {
	changed, err := k.ring.Reload()
	if err != nil {
		return err
	}
	if changed {
		return k.publish(ctx, st, log)
	}
	now, err := st.Recipient(ctx)
	if err != nil {
		return err
	}
	k.wanted.Store(&now)
	return nil
}

func identityCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "identity",
		Short: "The key that opens the secrets of jobs",
		Long: `The key that opens the secrets of jobs. Every worker of a deployment needs it, in the file that the setting identity
names or in the variable OUTLAST_IDENTITY_KEY. Clients need only its public half, which they find in Redis.`,
	}
	c.AddCommand(identityShowCommand(), identityNewCommand(), identityRotateCommand())
	return c
}

// withIdentity is a command about the identity file.
func withIdentity(c *cobra.Command, run func(c *cobra.Command, cfg config.Config) error) *cobra.Command {
	defaults := config.Defaults()
	c.Args = cobra.NoArgs
	config.AddFlags(c.Flags(), defaults)
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := config.Load(defaults, c.Flags(), os.Environ())
		if err != nil {
			return &usageError{err}
		}
		return run(c, cfg)
	}
	return c
}

func identityShowCommand() *cobra.Command {
	return withIdentity(&cobra.Command{
		Use:   "show",
		Short: "Show the public halves of the keys, the one that is sealed for first",
	}, func(c *cobra.Command, cfg config.Config) error {
		load := func() (*seal.Identity, error) { return seal.Load(cfg.Identity) }
		if cfg.IdentityKey != "" {
			load = func() (*seal.Identity, error) { return seal.Parse(string(cfg.IdentityKey)) }
		}
		id, err := load()
		if err != nil {
			return err
		}
		for _, r := range id.Recipients() {
			fmt.Fprintln(c.OutOrStdout(), r)
		}
		return nil
	})
}

func identityNewCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "new",
		Short:   "Write a new key to standard output, as an identity file holds it",
		Example: "  (umask 077; worker identity new > identity)\n  worker identity new | kubectl create secret generic outlast --from-file=identity=/dev/stdin",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			id, err := seal.Generate()
			if err != nil {
				return err
			}
			_, err = c.OutOrStdout().Write(id.Text())
			return err
		},
	}
}

func identityRotateCommand() *cobra.Command {
	return withIdentity(&cobra.Command{
		Use:   "rotate",
		Short: "Put a new key on top of the identity file",
		Long: `Put a new key on top of the identity file. Workers that run read it within seconds; the first that has both keys lets
clients seal for the new one. Copy the file to the other workers: one without the new key says so, and leaves jobs whose
secrets it cannot open to others.

The old key stays in the file: it opens the secrets of jobs that were submitted before. Take it out when they have ended.`,
	}, func(c *cobra.Command, cfg config.Config) error {
		if cfg.IdentityKey != "" {
			return errors.New("the key comes from OUTLAST_IDENTITY_KEY: put the output of `worker identity new` before it, and start the workers again")
		}
		id, err := seal.Rotate(cfg.Identity)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "%s is the new key in %s\n", id.Recipient(), cfg.Identity)
		return nil
	})
}
