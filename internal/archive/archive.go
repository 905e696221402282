package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/gcerrors"
)

// Archive is an open bucket. It is safe for use by several goroutines.
type Archive struct {
	bucket *blob.Bucket
	name   string   // the URL without credentials
	hide   []string // what must not be in an error
	codec  codec
}

// ErrNotFound says that there is no such bundle or log.
var ErrNotFound = errors.New("not in the archive")

// Open opens the archive at a URL such as file:///var/lib/outlast/archive or s3://bucket?region=eu-west-1. The
// directory of a file:// URL is made if it does not exist, closed to other users.
func Open(ctx context.Context, rawURL string) (*Archive, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme == "" {
		return nil, errors.New("open the archive: not a URL such as file:///path or s3://bucket") // may hold a password
	}
	a := &Archive{name: safeName(u), hide: credentials(rawURL, u)}
	if a.codec, err = newCodec(); err != nil {
		return nil, a.failed(err, "open")
	}
	if u.Scheme == fileblob.Scheme {
		a.bucket, err = openDir(u)
	} else if mux := blob.DefaultURLMux(); mux.ValidBucketScheme(u.Scheme) {
		a.bucket, err = mux.OpenBucketURL(ctx, u)
	} else {
		known := append(mux.BucketSchemes(), fileblob.Scheme)
		slices.Sort(known)
		err = fmt.Errorf("this program knows no %s:// (it knows %s)", u.Scheme, strings.Join(slices.Compact(known), ", "))
	}
	if err != nil {
		a.codec.close()
		return nil, a.failed(err, "open")
	}
	return a, nil
}

// openDir opens a directory as a bucket, without files for metadata beside the objects.
func openDir(u *url.URL) (*blob.Bucket, error) {
	if u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(u.Path) {
		return nil, errors.New("a file:// URL needs an absolute path: file:///path")
	}
	return fileblob.OpenBucket(filepath.FromSlash(u.Path), &fileblob.Options{
		CreateDir:   true,
		DirFileMode: 0o700,
		NoTempDir:   true, // a rename from another file system would not be atomic
		Metadata:    fileblob.MetadataDontWrite,
	})
}

// Close releases what the driver holds.
func (a *Archive) Close() error {
	a.codec.close()
	if err := a.bucket.Close(); err != nil {
		return a.failed(err, "close")
	}
	return nil
}

// String is the archive's URL without credentials.
func (a *Archive) String() string { return a.name }

// put writes one object, all or nothing.
func (a *Archive) put(ctx context.Context, key, contentType string, write func(*blob.Writer) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var file *os.File // only a bucket in a directory has one
	w, err := a.bucket.NewWriter(ctx, key, &blob.WriterOptions{
		ContentType: contentType,
		BeforeWrite: func(as func(any) bool) error {
			as(&file)
			return nil
		},
	})
	if err != nil {
		return a.failed(err, "write %s", key)
	}
	err = write(w)
	if err == nil && file != nil {
		err = file.Sync() // what is archived outlives the host, too
	}
	if err != nil {
		cancel() // makes Close drop what was written
		_ = w.Close()
		return a.failed(err, "write %s", key)
	}
	if err := w.Close(); err != nil {
		return a.failed(err, "write %s", key)
	}
	return nil
}

// remove deletes one object. One that is not there is success.
func (a *Archive) remove(ctx context.Context, key string) error {
	err := a.bucket.Delete(ctx, key)
	if err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return a.failed(err, "delete %s", key)
	}
	return nil
}

// failed says what could not be done, and keeps credentials out of it. Errors for a missing object wrap ErrNotFound.
func (a *Archive) failed(err error, format string, args ...any) error {
	doing := "archive " + a.name + ": " + fmt.Sprintf(format, args...)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return fmt.Errorf("%s: %w", doing, ErrNotFound)
	}
	for _, secret := range a.hide {
		if strings.Contains(err.Error(), secret) {
			return fmt.Errorf("%s: %s", doing, a.clean(err.Error()))
		}
	}
	// The system's own errors name the path once more, in full, before what matters; where room is scarce that is cut off.
	if system := (*fs.PathError)(nil); errors.As(err, &system) {
		return &systemError{text: doing + ": " + system.Err.Error(), err: err}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// systemError is an error of the file system that holds a bucket, told briefly.
type systemError struct {
	text string
	err  error
}

func (e *systemError) Error() string { return e.text }
func (e *systemError) Unwrap() error { return e.err }

// clean removes the credentials from a text.
func (a *Archive) clean(text string) string {
	for _, secret := range a.hide {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	return text
}

// safeName is the part of a URL that may be shown.
func safeName(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// credentials lists what of a URL must not be shown, longest first: the whole of it if it has a user or a query, and the
// values in there.
func credentials(raw string, u *url.URL) []string {
	var all []string
	if u.User != nil {
		password, _ := u.User.Password()
		all = append(all, raw, u.String(), u.Redacted(), u.User.String(), password)
	}
	if u.RawQuery != "" {
		all = append(all, raw, u.String(), u.Redacted(), u.RawQuery)
		for _, values := range u.Query() {
			for _, value := range values {
				if len(value) >= 8 { // "true" or a region is none, and would make errors unreadable
					all = append(all, value)
				}
			}
		}
	}
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(all)
}
