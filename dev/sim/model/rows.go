package model

const (
	rowBits = 18
	rowMask = 1<<rowBits - 1
)

// rows is a list that grows without being copied, which would take twice the memory.
type rows[T any] struct {
	blocks [][]T
	n      int
}

func (r *rows[T]) add(v T) {
	if r.n&rowMask == 0 {
		r.blocks = append(r.blocks, make([]T, 1<<rowBits))
	}
	r.blocks[r.n>>rowBits][r.n&rowMask] = v
	r.n++
}

func (r *rows[T]) at(i int) *T { return &r.blocks[i>>rowBits][i&rowMask] }
