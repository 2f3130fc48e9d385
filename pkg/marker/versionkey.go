package marker

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// VersionKey is a version as the key of a ConfigMap, which takes letters, digits, hyphens, dots and underscores alone.
// What else is in it is an underscore with two hexadecimal digits; a version of Bottlerocket is as it is.
func VersionKey(version string) string {
	var key strings.Builder
	for _, b := range []byte(version) {
		switch {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '-', b == '.':
			key.WriteByte(b)
		default:
			fmt.Fprintf(&key, "_%02X", b)
		}
	}
	return key.String()
}

// KeyVersion returns the version of such a key; empty if there is none.
func KeyVersion(key string) string {
	parts := strings.Split(key, "_")
	version := parts[0]
	for _, part := range parts[1:] {
		b, err := hex.DecodeString(part[:min(2, len(part))])
		if err != nil {
			return ""
		}
		version += string(b) + part[min(2, len(part)):]
	}
	if VersionKey(version) != key {
		return ""
	}
	return version
}
