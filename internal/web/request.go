package web

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
)

// requestYAML writes what a job was asked to be in the words of a job file. Secrets have names only; a webhook's URL is
// cut down to its host, since the rest of it often is a password.
func requestYAML(r job.Request) string {
	d := &document{}
	d.add("name", r.Name)
	d.add("priority", r.Priority)
	if len(r.Tasks) == 1 {
		d.task(r.Tasks[0])
	} else {
		var tasks []yaml.MapSlice
		for _, t := range r.Tasks {
			one := &document{}
			one.add("name", t.Name)
			one.task(t)
			tasks = append(tasks, one.fields)
		}
		d.add("tasks", tasks)
	}
	var hooks []yaml.MapSlice
	for _, h := range r.Webhooks {
		one := &document{}
		if u, err := url.Parse(h.URL); err == nil && h.URL != "" {
			one.add("url", u.Scheme+"://"+u.Host+"/…")
		}
		one.add("url_secret", h.URLSecret)
		one.add("events", h.Events)
		one.add("sign_with", h.SignWith)
		hooks = append(hooks, one.fields)
	}
	d.add("webhooks", hooks)
	d.add("log_retention", r.LogRetention)
	if r.Count > 1 {
		d.add("rank", strconv.Itoa(r.Rank)+" of "+strconv.Itoa(r.Count))
	}
	text, err := yaml.MarshalWithOptions(d.fields, yaml.UseLiteralStyleIfMultiline(true), yaml.IndentSequence(true))
	if err != nil {
		return "# this request cannot be written: " + lines(err.Error())
	}
	return lines(string(text))
}

// document is a mapping that leaves out what is empty.
type document struct{ fields yaml.MapSlice }

func (d *document) add(key string, value any) {
	switch v := value.(type) {
	case string:
		if v == "" {
			return
		}
		value = v
	case int:
		if v == 0 {
			return
		}
	case float64:
		if v == 0 {
			return
		}
	case bool:
		if !v {
			return
		}
	case time.Duration:
		if v == 0 {
			return
		}
		value = v.String()
	case []string:
		if len(v) == 0 {
			return
		}
	case []int:
		if len(v) == 0 {
			return
		}
	case []yaml.MapSlice:
		if len(v) == 0 {
			return
		}
	case yaml.MapSlice:
		if len(v) == 0 {
			return
		}
	}
	d.fields = append(d.fields, yaml.MapItem{Key: key, Value: value})
}

func (d *document) task(t job.TaskRequest) {
	d.add("num_nodes", t.Nodes)
	d.add("resources", resourcesOf(t.Resources, t.Recovery))
	if t.Workdir != "" {
		d.add("workdir", "(sent along)")
	}
	var files []yaml.MapSlice
	for _, f := range t.Files {
		one := &document{}
		one.add("path", f.Path)
		one.add("source", sourceOf(f))
		one.add("mode", f.Mode)
		files = append(files, one.fields)
	}
	d.add("file_mounts", files)
	d.add("envs", sorted(t.Envs))
	d.add("secrets", t.Secrets)
	d.add("max_duration", t.MaxDuration)
	d.add("max_wait", t.MaxWait)
	d.add("stop_grace", t.Grace)
	notice := &document{}
	notice.add("signal", t.OnNotice.Signal)
	notice.add("run", t.OnNotice.Run)
	d.add("on_notice", notice.fields)
	d.add("event_callback", t.EventCallback)
	d.add("setup", t.Setup)
	d.add("run", t.Run)
}

// sourceOf is where a file comes from, without what a URL may hide behind its path.
func sourceOf(f job.FileMount) string {
	if f.Source == "" {
		return "(sent along)"
	}
	u, err := url.Parse(f.Source)
	if err != nil {
		return "(elsewhere)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

func resourcesOf(r job.Resources, recovery job.Recovery) yaml.MapSlice {
	d := &document{}
	var wants []yaml.MapSlice
	for _, w := range r.Any {
		if one := wantOf(w); len(one) > 0 {
			wants = append(wants, one)
		}
	}
	switch {
	case len(wants) == 1:
		d.fields = wants[0]
	case r.Ordered:
		d.add("ordered", wants)
	default:
		d.add("any_of", wants)
	}
	how := &document{}
	how.add("strategy", string(recovery.Strategy))
	how.add("max_restarts_on_errors", recovery.MaxRestartsOnErrors)
	how.add("recover_on_exit_codes", recovery.RecoverOnExitCodes)
	d.add("job_recovery", how.fields)
	return d.fields
}

func wantOf(w job.Want) yaml.MapSlice {
	d := &document{}
	if w.Provider != "" {
		d.add("infra", account.Place(job.Offer{Provider: w.Provider, Region: orStar(w.Region), Zone: w.Zone}))
	}
	d.add("instance_type", w.Type)
	d.add("cpus", quantity(w.CPUs))
	d.add("memory", quantity(w.MemoryGB))
	if w.Accelerator != "" {
		d.add("accelerators", w.Accelerator+":"+number64(w.AcceleratorCount))
	}
	d.add("accelerator_args", sorted(w.AcceleratorArgs))
	d.add("use_spot", w.UseSpot)
	d.add("max_hourly_cost", w.MaxPrice)
	d.add("disk_size", w.DiskGB)
	d.add("disk_tier", w.DiskTier)
	d.add("local_disk", w.LocalDisk)
	d.add("network_tier", w.NetworkTier)
	d.add("image_id", w.Image)
	d.add("ports", w.Ports)
	d.add("labels", sorted(w.Labels))
	return d.fields
}

func orStar(s string) string {
	if s == "" {
		return "*"
	}
	return s
}

func quantity(q job.Quantity) string {
	if q.N == 0 {
		return ""
	}
	if q.AtLeast {
		return number64(q.N) + "+"
	}
	return number64(q.N)
}

func number64(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func sorted(m map[string]string) yaml.MapSlice {
	var out yaml.MapSlice
	for k, v := range m {
		out = append(out, yaml.MapItem{Key: k, Value: v})
	}
	slices.SortFunc(out, func(a, b yaml.MapItem) int {
		if a.Key.(string) < b.Key.(string) {
			return -1
		}
		return 1
	})
	return out
}
