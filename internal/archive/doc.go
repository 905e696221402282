// Package archive keeps what must outlive machines and workers (G11) in a bucket: the files that users submit with
// a job, and the logs of its runs.
//
//	bundles/<sha256>.tar.gz                                  a directory, packed the same way each time
//	logs/<job>/<task>/<attempt>/<node>/<from>-<to>.zst       bytes from..to of one node's log, and their marks
//	logs/<job>/journal.zst                                   what workers have logged about a job
//	logs/<job>/<task>/<attempt>/<node>/<from>-<to>.dropped   nothing: these bytes were dropped, the log was too long
//	jobs/<down>/<down>.json.zst                              all about a job that has left Redis; names count down
//	expiry/<rule>/<hour>/<job>-<bytes>                       a mark: when the logs of a job are to go
//	notices/<job>.json                                       in the place of logs that were removed
//
// Bundles and logs never change: a name says exactly what is inside. So every write may be repeated, also by a worker
// that has lost its lease without knowing, and the size of a log and its gaps are known from a list of names alone.
//
// Segments of a log may overlap (a worker that cannot tell whether its write succeeded writes again, perhaps more).
// Reading stitches them together by position. Where bytes are missing or were dropped, a line says how many.
//
// The marks of a segment, such as when what was written, are a skippable frame before its bytes: zstd itself reads the file
// as exactly what the user's code has written.
//
// [Open] takes any URL that gocloud.dev/blob knows. file:// is built in; the binaries add others by importing their
// drivers. No error of this package holds a credential from that URL.
package archive
