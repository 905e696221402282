// Package web is what a worker shows over HTTP: pages about jobs and machines for people, the same for programs, whether
// the worker lives and serves, its metrics, and the queues through asynqmon.
//
//	/                   jobs, filtered and in pages        /api/v1/jobs            the same as JSON
//	/jobs/7             all about one job                  /api/v1/jobs/7          the same as JSON
//	/jobs/7/live        what happens to it, as it happens  /api/v1/jobs/7/logs     its output
//	/jobs/7/log         its output, in pages, with search  /healthz /readyz        is it there, does it serve
//	/jobs/7/cancel …    forms that change it               /metrics                Prometheus
//	/machines /workers  what there is                      /queues                 asynqmon, read-only
//
// Pages are whole without a script: html/template writes them, forms change things, links lead on. The one script,
// assets/live.js, renews the parts of a page marked data-live and appends to the log as a stream of server-sent events
// brings it.
//
//	request ─► gate: token, session ─► host, origin ─► handler ─► view (pure) ─► template ─► page
//
// Everything a page shows may be hostile: it passes [render.Text], which makes visible what acts, and html/template,
// which escapes. The policy sent along allows no inline script and no other host. The server listens on loopback unless
// a token guards it.
//
// On failure: a store that does not answer is told as a pause, with 503, and its error goes to the log of the worker.
// Streams end with the server, so that nobody's open page holds up a worker that stops.
package web
