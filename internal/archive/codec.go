package archive

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// maxSegment bounds a segment, in bytes: reading one back may take so much memory.
const maxSegment = 64 << 20

// codec compresses segments, one zstd frame each. Both halves serve many goroutines, and are kept because making them
// costs megabytes.
type codec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

func newCodec() (codec, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithLowerEncoderMem(true))
	if err != nil {
		return codec{}, fmt.Errorf("make a zstd encoder: %w", err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxSegment)) // a damaged frame may claim any size
	if err != nil {
		return codec{}, fmt.Errorf("make a zstd decoder: %w", err)
	}
	return codec{enc, dec}, nil
}

func (c codec) close() {
	_ = c.enc.Close() // fails only when it writes to a stream, which it does not
	c.dec.Close()
}
