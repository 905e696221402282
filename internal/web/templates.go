package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// pages are the templates by name. Each has the layout and a main part of its own.
type pages map[string]*template.Template

// loadPages parses all templates. They are part of the binary, so that none can be wrong but in a test.
var loadPages = sync.OnceValue(func() pages {
	funcs := template.FuncMap{
		"asset": assetURL, "icon": icon, "iconFile": iconFile, "statusClass": statusClass, "text": render.Text,
	}
	layout := template.Must(template.New("layout").Funcs(funcs).ParseFS(templateFiles, "templates/layout.html"))
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	all := pages{}
	for _, file := range files {
		if name := strings.TrimSuffix(path.Base(file), ".html"); name != "layout" {
			all[name] = template.Must(template.Must(layout.Clone()).ParseFS(templateFiles, file))
		}
	}
	return all
})

// asset is a file that pages load.
type asset struct {
	body []byte
	kind string
	tag  string // changes with the body
}

// assets are all of them by name: those of the folder, and an icon for each status.
var assets = sync.OnceValue(func() map[string]asset {
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	all := map[string]asset{}
	add := func(name string, body []byte) {
		sum := sha256.Sum256(body)
		all[name] = asset{body: body, kind: kinds[path.Ext(name)], tag: hex.EncodeToString(sum[:6])}
	}
	files, err := fs.Glob(assetFiles, "assets/*")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	for _, file := range files {
		body, err := assetFiles.ReadFile(file)
		if err != nil {
			panic(err) // the files are part of the binary
		}
		add(path.Base(file), body)
	}
	for _, s := range job.Statuses {
		add(iconFile(s), favicon(s))
	}
	return all
})

// assetURL names an asset with its version, so that a browser may keep it for ever.
func assetURL(name string) string { return "/assets/" + name + "?v=" + assets()[name].tag }

func serveAsset(w http.ResponseWriter, r *http.Request) {
	a, known := assets()[strings.TrimPrefix(r.URL.Path, "/assets/")]
	if !known {
		http.NotFound(w, r)
		return
	}
	if r.FormValue("v") == a.tag {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	w.Header().Set("Content-Type", a.kind)
	_, _ = w.Write(a.body) // whoever has gone needs no picture
}
