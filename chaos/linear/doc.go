// Package linear says what the record of a job is to those who write it at the same time: a small state machine, of which
// every history of claims, commits, cancels and resumptions must be an order of steps, one after the other, that agrees with
// what each caller was told and with which call ended before which other began. That is linearizability, and porcupine
// (github.com/anishathalye/porcupine) decides it.
//
//	clients ─► proxy each ─► redis-server            calls and answers ─► model
//	            cut, slow, deaf    killed, restarted                        is there such an order?
//
// The model knows nothing of scripts and keys. It is written from what package store promises: a claim raises the fence, a
// commit is for the holder of the present fence and for the next sequence number, the same commit again is success, a cancel
// stays until the job goes again, and who is told a thing was told the truth. A call whose answer was lost may have taken
// effect at any time after it began, or never.
//
// The one thing that depends on time is the end of a claim. The model only holds that no claim was taken from its holder
// before it can have run out; that it can be taken then is not demanded.
//
// The test beside the model drives the real store so (TestG2_RecordIsLinearizable), and with the bug G2 of package planted it
// must fail.
package linear
