//go:build !linux

package realcluster

import (
	"context"
	"net"

	"github.com/pkg/errors"
)

func (n *network) dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("real nodes need Linux")
}
