// Package spec reads what a user writes: a job file in SkyPilot's task YAML becomes a [job.Request], strictly checked.
//
// A file is one task, or a chain: several YAML documents, each a task, with an optional first one that only names the
// job. Everything wrong with a file is reported at once, with its place, the line, and what would be right ([Errors]). A
// field that SkyPilot knows and this program does not serve is refused by name: to ignore it would run another job than
// the one that was asked for. Whether there is such a machine, and whether its provider honours a field, is not judged
// here.
//
// What fields there are is said once, in the tables of fields_task.go and fields_resources.go. The reader, its
// suggestions, the JSON Schema ([Schema]) and docs/job-file.md ([Reference]) are made of them.
//
// The way of a file:
//
//	bytes ─ source.go ─► tokens ─► syntax tree ─ tree.go ─► nodes ─ override.go ─► nodes ─ task.go, resources.go, ... ─► Job
//	        size, encoding          (goccy/go-yaml)          aliases,  flags of the          names, ranges
//	                                                         depth     command line
//
// Job files come from anybody. Size, number of tokens, nesting and alias expansion are bounded before anything is
// built from them, errors quote what they show so that no file reaches a terminal raw, and values of variables and
// secrets never appear in an error, nor in the lines that are shown with it (mask.go).
//
// Two things differ from SkyPilot on purpose. A value of envs reaches the job as it is written (SkyPilot hands true on
// as True, 1_000 as 1000). And ${VAR} is left to bash, but for the paths of file_mounts and workdir.
//
// [Environment] and [TaskID] are the other side: what the user's code finds in its environment.
package spec
