// Package web is what a worker shows over HTTP: whether it lives and serves, its metrics, and the queues through
// asynqmon. It listens on loopback unless a token guards it.
//
//	/healthz   the process lives
//	/readyz    it serves the deployment: 200, or 503 with the reason
//	/metrics   Prometheus
//	/queues    asynqmon, read-only
package web
