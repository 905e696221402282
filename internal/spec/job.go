package spec

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/outlast-dev/outlast/internal/job"
)

// Job is a request as a user wrote it, with what must not be stored in it.
type Job struct {
	Request  job.Request
	Secrets  []map[string]string // per task: values by name; nil for none. Never log or print them.
	Workdirs []string            // per task: path of the local folder to take along, "" for none
	Mounts   [][]string          // per task and file mount: path of the local file or folder to take along, "" for none
	Unused   []string            // what of the file has no effect anywhere, and why, one sentence each, fit for a terminal
}

// Options are what the command line says beside the file, and what wins over it.
type Options struct {
	Env       map[string]string // for every task
	Secret    map[string]string // for every task
	Overrides []Override        // of fields, for every task
	Name      string            // of the job, "" to leave it to the file
	Dir       string            // where relative paths start; "" is the current folder, for ParseFile that of the file
	User      string            // who submits, for people only

	// Look looks for the local files that a job names. Nil is for nobody looks, for ParseFile os.Stat.
	Look func(path string) (fs.FileInfo, error)
}

// Parse reads a job file. name is how errors call it, and names the job if nothing else does. The error, if any, is an
// [Errors] with everything that is wrong. Parse does not look at the file system; [ParseFile] does.
func Parse(name string, data []byte, opt Options) (Job, error) {
	return newDecoder(name, opt).parseJob(data)
}

// ParseFile reads the job file at path. Beside what [Parse] checks, workdirs must exist. The error is an [Errors] if
// the file could be read.
func ParseFile(path string, opt Options) (Job, error) {
	f, err := os.Open(path)
	if err != nil {
		return Job{}, fmt.Errorf("read job file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return Job{}, fmt.Errorf("read job file: %w", err)
	}
	if opt.Dir == "" {
		opt.Dir = filepath.Dir(path)
	}
	if opt.Look == nil {
		opt.Look = os.Stat
	}
	return newDecoder(path, opt).parseJob(data)
}

func newDecoder(name string, opt Options) *decoder {
	return &decoder{report: &report{file: name}, opt: opt, names: make(map[string]position), secrets: make(map[string]bool)}
}

// parseJob reads data and returns the job only if nothing is wrong with it.
func (d *decoder) parseJob(data []byte) (Job, error) {
	docs := d.documents(d.parse(data))
	if len(docs) > 0 || len(d.problems) == 0 {
		d.read(docs)
	}
	return d.finish()
}

// finish applies the options that concern the whole job.
func (d *decoder) finish() (Job, error) {
	d.job.Request.User = d.opt.User
	if err := d.err(); err != nil {
		return Job{}, err
	}
	return d.job, nil
}
