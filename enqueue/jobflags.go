package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/outlast-dev/outlast/internal/render"
	"github.com/outlast-dev/outlast/internal/spec"
)

// jobFlags are the flags that say something about the job itself. All commands that read a job file share them.
type jobFlags struct {
	name        string
	envs        []string
	secrets     []string
	envFiles    []string
	secretFiles []string
	fields      map[string]*[]string // by flag
	spot        bool
	noSpot      bool
}

// fieldFlags are the flags that stand for a field of the job file, in the order of the help. Their names are those of
// `sky jobs launch`.
var fieldFlags = []struct {
	flag, short, field, kind, usage string
}{
	{"workdir", "w", "workdir", "DIR", "folder to take along"},
	{"infra", "", "resources.infra", "PLACE", `where: provider/region/zone, "*" for any`},
	{"cpus", "", "resources.cpus", "N", "CPUs: 4, or 4+ for at least four"},
	{"memory", "", "resources.memory", "GB", "memory: 16, 16+ or 512MB"},
	{"gpus", "", "resources.accelerators", "NAME:N", "accelerators: A100:8"},
	{"instance-type", "t", "resources.instance_type", "TYPE", "the provider's name for a kind of machine"},
	{"num-nodes", "", "num_nodes", "N", "machines of each task"},
	{"image-id", "", "resources.image_id", "IMAGE", "image of the machine, or docker:NAME"},
	{"disk-size", "", "resources.disk_size", "GB", "disk: 100, or 1TB"},
	{"disk-tier", "", "resources.disk_tier", "TIER", "low, medium, high, ultra or best"},
	{"local-disk", "", "resources.local_disk", "DISK", "disk of the machine itself: nvme:1000+"},
	{"network-tier", "", "resources.network_tier", "TIER", "standard or best"},
	{"ports", "", "resources.ports", "PORT", "port to open, or a range such as 8000-8010 (repeatable)"},
	{"max-hourly-cost", "", "resources.max_hourly_cost", "PRICE", "no machine that costs more"},
	{"job-recovery", "", "resources.job_recovery", "STRATEGY", "EAGER_NEXT_REGION, FAILOVER or NEVER"},
	{"priority", "", "resources.priority", "N", "from -1000 to 1000, higher first"},
	{"max-duration", "", "max_duration", "TIME", "end the job's code after so long: 90m, 2h, 1d"},
	{"max-wait", "", "max_wait", "TIME", "give up after so long without a machine"},
}

// add gives the flags to a command. A field of the file is taken out with none: --gpus none.
func (j *jobFlags) add(f *pflag.FlagSet) {
	f.StringVarP(&j.name, "name", "n", "", "name of the job")
	f.StringArrayVar(&j.envs, "env", nil, "environment variable K=V, or K to take it from here (repeatable)")
	f.StringArrayVar(&j.envFiles, "env-file", nil, "file with a K=V in each line (repeatable)")
	f.StringArrayVar(&j.secrets, "secret", nil, "the same as --env for a secret, which is stored sealed (repeatable)")
	f.StringArrayVar(&j.secretFiles, "secret-file", nil, "file of secrets, a K=V in each line (repeatable)")
	j.fields = make(map[string]*[]string, len(fieldFlags))
	for _, d := range fieldFlags {
		v := &wordFlag{kind: d.kind, many: d.flag == "ports"}
		f.VarP(v, d.flag, d.short, d.usage)
		j.fields[d.flag] = &v.words
	}
	f.BoolVar(&j.spot, "use-spot", false, "only machines that can be taken away, for less money")
	f.BoolVar(&j.noSpot, "no-use-spot", false, "only machines that can not")
}

// wordFlag is the value of a flag that stands for a field. What it must look like is known to package spec.
type wordFlag struct {
	kind  string // for the help
	many  bool   // each use of the flag adds a word, else the last one counts
	words []string
}

func (w *wordFlag) String() string { return strings.Join(w.words, ",") }
func (w *wordFlag) Type() string   { return w.kind }

func (w *wordFlag) Set(s string) error {
	if !w.many {
		w.words = nil
	}
	w.words = append(w.words, s)
	return nil
}

// options are what the flags say, for package spec.
func (j *jobFlags) options() (spec.Options, error) {
	opt := spec.Options{Name: j.name, User: userName(), Look: os.Stat}
	for _, d := range fieldFlags {
		if words := *j.fields[d.flag]; len(words) > 0 {
			opt.Overrides = append(opt.Overrides, spec.Override{Flag: "--" + d.flag, Field: d.field, Values: words})
		}
	}
	switch {
	case j.spot && j.noSpot:
		return opt, usagef("--use-spot and --no-use-spot: keep one of the two")
	case j.spot:
		opt.Overrides = append(opt.Overrides, spec.Override{Flag: "--use-spot", Field: "resources.use_spot", Values: []string{"true"}})
	case j.noSpot:
		opt.Overrides = append(opt.Overrides, spec.Override{Flag: "--no-use-spot", Field: "resources.use_spot", Values: []string{"false"}})
	}
	var err error
	if opt.Env, err = variables("--env", j.envFiles, j.envs); err != nil {
		return opt, err
	}
	opt.Secret, err = variables("--secret", j.secretFiles, j.secrets)
	return opt, err
}

// variables reads files, and over them K=V, or K with the value from our own environment. Values are not quoted in
// errors: they may be secret.
func variables(flag string, files, pairs []string) (map[string]string, error) {
	out := map[string]string{}
	for _, path := range files {
		more, err := spec.ReadEnvFile(path)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, more)
	}
	for _, pair := range pairs {
		name, value, given := strings.Cut(pair, "=")
		if name == "" {
			return nil, usagef("%s: write NAME=VALUE, or NAME to take it from the environment", flag)
		}
		if !given {
			if value, given = os.LookupEnv(name); !given {
				return nil, usagef("%s %s: it has no value, and there is no such variable here", flag, render.Text(name))
			}
		}
		out[name] = value
	}
	return out, nil
}

// jobArgs checks the arguments of a command that reads one job.
func jobArgs(c *cobra.Command, args []string) error {
	switch dash := c.ArgsLenAtDash(); {
	case dash > 0:
		return usagef("either a job file or, after --, a command")
	case len(args) == 0:
		return usagef("what is to be run? Name a job file, or write a command after --")
	case dash < 0 && len(args) > 1:
		return usagef("one job file at a time; write a command after --")
	}
	return nil
}

// readJob reads what is to be run from a file, from standard input (-) or, as a command, from the command line.
func (a *app) readJob(args []string, command bool, flags *jobFlags) (spec.Job, error) {
	opt, err := flags.options()
	if err != nil {
		return spec.Job{}, unreadable(err)
	}
	switch {
	case command:
		return spec.FromCommand(args, opt)
	case args[0] == "-":
		return readStream(a.in, opt)
	default:
		j, err := spec.ParseFile(args[0], opt)
		return j, unreadable(err)
	}
}

// unreadable makes an error of the command line of a file that it names and that cannot be read.
func unreadable(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return &usageError{err: err}
	}
	return err
}

// maxFile is a little more than spec accepts, which then says so.
const maxFile = 1<<20 + 1

func readStream(in io.Reader, opt spec.Options) (spec.Job, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxFile))
	if err != nil {
		return spec.Job{}, fmt.Errorf("read the job file from standard input: %w", err)
	}
	return spec.Parse("stdin", data, opt)
}

// userName is who submits or cancels, for people only.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER")
}
