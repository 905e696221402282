// Package hook tells the world outside what happens to a job: it makes what a webhook is sent and what a callback finds in
// its environment, sends the one and runs the other, and says when to try again. It knows no store and no queue; the package
// tasks brings it the news that a job has, in order, and remembers how far each receiver has come.
//
//	webhook   one POST of JSON, signed as Standard Webhooks has it       body.go, sign.go, send.go
//	callback  bash, on the worker, in a folder and environment of its own   callback.go
//
// Receivers are not trusted. A webhook reaches no address that only this computer or its network can, unless that is
// allowed, follows no redirect to another host, and has ten seconds in all; what it answers is not kept beyond a line. A
// callback has a minute and leaves no process. Neither ever decides anything about a job.
package hook
