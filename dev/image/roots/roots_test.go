package roots

import (
	"crypto/x509"
	"encoding/pem"
	"testing"

	"gotest.tools/v3/assert"
)

func TestPEM(t *testing.T) {
	count := 0
	for rest := PEM(); ; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			assert.Equal(t, len(rest), 0)
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		assert.NilError(t, err)
		// The oldest ones are of a version that can't say that they are authorities.
		assert.Assert(t, c.IsCA || c.Version < 3, c.Subject)
	}
	assert.Assert(t, count > 100, count)
}
