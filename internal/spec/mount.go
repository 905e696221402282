package spec

import (
	"cmp"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/outlast-dev/outlast/internal/job"
)

// mount is a file mount on the way.
type mount struct {
	job.FileMount
	local string // path of what is taken along, "" for a source that lies elsewhere
	at    position
}

// mountModes are how a bucket reaches a node.
var mountModes = []string{"MOUNT", "COPY", "MOUNT_CACHED"}

// stores are the schemes of the buckets that SkyPilot knows, by the name of their store.
var stores = map[string]string{"s3": "s3", "gcs": "gs", "r2": "r2", "ibm": "cos", "oci": "oci", "nebius": "nebius", "coreweave": "cw", "azure": "https"}

// storeNames are the words for stores.
func storeNames() []string { return sortedKeys(stores) }

// schemes are those of addresses. An https:// one is a file, or a bucket of Azure.
var schemes = []string{"s3", "gs", "r2", "cos", "oci", "nebius", "cw", "https", "http"}

// mounts reads file_mounts and storage_mounts. They come back in the order of their paths: what lies in another comes
// after it.
func (d *decoder) mounts(task *node, vars substitution) []mount {
	var out []mount
	for _, name := range []string{"file_mounts", "storage_mounts"} {
		n := task.get(name)
		if n == nil || !d.isMapping(n, name) {
			continue
		}
		for _, f := range n.fields {
			if m, ok := d.mount(f, join(name, f.name), vars); ok {
				out = append(out, m)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b mount) int { return cmp.Compare(a.Path, b.Path) })
	for i := 1; i < len(out); i++ {
		if out[i].Path == out[i-1].Path {
			d.add(out[i].at, join("file_mounts", out[i].Path), "is mounted twice", "keep one")
		}
	}
	return out
}

// mount reads one entry.
func (d *decoder) mount(f field, at string, vars substitution) (mount, bool) {
	m := mount{at: f.at}
	var ok bool
	if m.Path, ok = d.target(f, at, vars); !ok {
		return m, false
	}
	switch v := f.value; v.kind {
	case kindText:
		return d.source(m, v, at, vars, "COPY")
	case kindMapping:
		return d.longMount(m, v, at, vars)
	default:
		d.add(f.at, at, "is "+describe(v), "write a local path, an address such as s3://bucket/path, or a mapping with source")
		return m, false
	}
}

// target reads where on the node a mount goes.
func (d *decoder) target(f field, at string, vars substitution) (string, bool) {
	const right = "write an absolute path, one below ~/, or one within the work directory"
	text, ok := d.substitute(&node{kind: kindText, text: f.name, at: f.at}, at, vars)
	if !ok {
		return "", false
	}
	home := strings.HasPrefix(text, "~/")
	clean := path.Clean(strings.TrimPrefix(text, "~/"))
	switch {
	case text == "" || badWord(text) != "":
		d.add(f.at, at, "is not a path", right)
	case clean == "." || clean == "/" || clean == "~" || clean == ".." || strings.HasPrefix(clean, "../"):
		d.add(f.at, at, "is no place for files of its own", right)
	case home && path.IsAbs(clean), !home && strings.HasPrefix(clean, "~"):
		d.add(f.at, at, "is the path of somebody's home", right)
	case home:
		return "~/" + clean, true
	default:
		return clean, true
	}
	return "", false
}

// source reads a local path or an address.
func (d *decoder) source(m mount, n *node, at string, vars substitution, mode string) (mount, bool) {
	text, ok := d.substitute(n, at, vars)
	if !ok || text == "" {
		return m, false
	}
	scheme, _, remote := strings.Cut(text, "://")
	if !remote {
		if mode != "COPY" {
			d.add(n.at, at, "is a local path, which can not be mounted", "write mode: COPY, or the path alone after the colon, to have it taken along")
			return m, false
		}
		m.local, ok = d.localPath(n, text, at)
		return m, ok && d.isThere(n, m.local, at)
	}
	u, err := url.Parse(text)
	switch {
	case scheme == "file":
		d.add(n.at, at, "is a local path written as an address", "write the path alone")
	case !slices.Contains(schemes, scheme):
		d.add(n.at, at, "is at "+quote(scheme+"://")+", which nobody here can read", "addresses start with "+strings.Join(schemes, "://, ")+"://")
	case err != nil || u.Host == "" || badWord(text) != "":
		d.add(n.at, at, "is not an address", "write it as "+scheme+"://bucket/path")
	case u.User != nil && scheme != "oci": // oci://bucket@region
		d.add(n.at, at, "holds a user or a password, and is stored in clear", "fetch it in setup, with a secret")
	default:
		m.Source, m.Mode = text, mode
		return m, true
	}
	return m, false
}

// longMount reads the form with fields.
func (d *decoder) longMount(m mount, n *node, at string, vars substitution) (mount, bool) {
	d.checkFields(n, at, mountSection)
	mode := mountModes[0]
	if v := n.get("mode"); v != nil {
		mode = d.oneWord(v, at+".mode", vars, mountModes, strings.ToUpper)
	}
	if v := n.get("persistent"); v != nil {
		if !d.boolean(v, at+".persistent") {
			d.unused(at+".persistent", "no bucket is made, so none is deleted, either")
		}
	}
	source, name, store := n.get("source"), n.get("name"), ""
	if v := n.get("store"); v != nil {
		if store = d.oneWord(v, at+".store", vars, storeNames(), strings.ToLower); store == "" {
			return m, false
		}
	}
	switch {
	case mode == "":
		return m, false
	case source != nil && source.kind == kindList && len(source.items) == 1:
		source = source.items[0]
	case source != nil && source.kind == kindList:
		d.add(source.at, at+".source", "is a list", "write a mount for each of them")
		return m, false
	case source == nil:
		return d.bucket(m, n, at, vars, mode, store)
	}
	m, ok := d.source(m, source, at+".source", vars, mode)
	if !ok || name == nil {
		return m, ok
	}
	bucket, ok := d.substitute(name, at+".name", vars)
	if !ok {
		return m, false
	}
	if u, err := url.Parse(m.Source); m.local != "" || err != nil || u.Host != bucket {
		d.add(name.at, at+".name", "is a bucket to be made and filled, which is known but not supported", "remove name and store, and write mode: COPY, to have a local source taken along")
		return m, false
	}
	return m, true
}

// bucket reads a mount without a source: the whole of an existing bucket.
func (d *decoder) bucket(m mount, n *node, at string, vars substitution, mode, store string) (mount, bool) {
	name := n.get("name")
	switch {
	case name == nil:
		d.add(n.at, at, "has no source", "write source: s3://bucket/path")
		return m, false
	case store == "":
		d.add(name.at, at+".name", "does not say whose bucket it is", "write source: s3://bucket, or store: s3. The bucket must exist")
		return m, false
	}
	scheme := stores[store]
	if scheme == "https" {
		d.add(n.get("store").at, at+".store", "is not enough to find the bucket", "write source: https://ACCOUNT.blob.core.windows.net/CONTAINER")
		return m, false
	}
	text, ok := d.substitute(name, at+".name", vars)
	if !ok {
		return m, false
	}
	address := &node{kind: kindText, text: scheme + "://" + text, at: name.at}
	return d.source(m, address, at+".name", substitution{}, mode)
}

// oneWord reads one of a few words, in the case that they are written in.
func (d *decoder) oneWord(n *node, at string, vars substitution, words []string, inCase func(string) string) string {
	text, ok := d.substitute(n, at, vars)
	word := inCase(text)
	if ok && !slices.Contains(words, word) {
		d.add(n.at, at, "is "+quote(text), choice(word, words))
		ok = false
	}
	if !ok {
		return ""
	}
	return word
}

// substitution is what $NAME stands for in a path.
type substitution struct {
	envs    map[string]string
	secrets map[string]string
}

var variableUse = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)`)

// substitute reads text with the variables in it replaced by their values, as SkyPilot does in paths. What was put in
// is not looked at again.
func (d *decoder) substitute(n *node, at string, vars substitution) (string, bool) {
	text, ok := d.asText(n, at), true
	out := variableUse.ReplaceAllStringFunc(text, func(use string) string {
		name := strings.Trim(use, "${}")
		value, known := vars.envs[name]
		_, secret := vars.secrets[name]
		switch {
		case known:
		case secret:
			d.add(n.at, at, "uses the secret "+name+", and is stored in clear", "use a variable of envs, or fetch it in setup")
			ok = false
		case vars.envs != nil:
			d.add(n.at, at, "uses $"+name+", which is not among envs", "add it there, or give it with --env")
			ok = false
		default:
			return use
		}
		return value
	})
	return out, ok && (text != "" || n.kind == kindText)
}

// workdir returns the path of a local folder, relative ones from where the file is.
func (d *decoder) workdir(n *node, vars substitution) string {
	const right = "it must be a local folder"
	if n == nil {
		return ""
	}
	if n.kind == kindMapping {
		d.add(n.at, "workdir", "is a git repository, which is known but not supported", "clone it in setup: git clone URL")
		return ""
	}
	dir, ok := d.substitute(n, "workdir", vars)
	switch {
	case !ok || dir == "":
		return ""
	case strings.Contains(dir, "://") || strings.HasPrefix(dir, "git@"):
		d.add(n.at, "workdir", "is the address of something remote, which is not supported", right+"; clone a repository in setup")
		return ""
	}
	if dir, ok = d.localPath(n, dir, "workdir"); !ok || d.opt.Look == nil {
		return dir
	}
	if info, err := d.opt.Look(dir); err != nil || !info.IsDir() {
		d.add(n.at, "workdir", quote(n.text)+" is not a folder", right)
	}
	return dir
}

// localPath is a path on the computer of whoever submits. Relative ones start where the file is; those of a flag, where
// the user is.
func (d *decoder) localPath(n *node, text, at string) (string, bool) {
	switch {
	case text == "~" || strings.HasPrefix(text, "~/"):
		home, err := os.UserHomeDir()
		if err != nil {
			d.add(n.at, at, "names a home folder, but there is none", "write the whole path")
			return "", false
		}
		return filepath.Join(home, text[1:]), true
	case !filepath.IsAbs(text) && n.at.flag == "":
		return filepath.Join(d.opt.Dir, text), true
	}
	return text, true
}

// isThere looks for a file or folder.
func (d *decoder) isThere(n *node, local, at string) bool {
	if d.opt.Look == nil {
		return true
	}
	info, err := d.opt.Look(local)
	switch {
	case err != nil:
		d.add(n.at, at, quote(n.text)+" is not there, or can not be read", "it must be a local file or folder, or an address such as s3://bucket/path")
	case !info.IsDir() && info.Mode()&fs.ModeType != 0:
		d.add(n.at, at, quote(n.text)+" is neither a file nor a folder", "pipes, sockets and devices can not be taken along")
	default:
		return true
	}
	return false
}
