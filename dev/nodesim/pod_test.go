package nodesim

import (
	"testing"

	"gotest.tools/v3/assert"
)

// References in arguments and values are resolved as the API's documentation of a container says.
func TestReferencesToVariables(t *testing.T) {
	values := map[string]string{"HOST": "10.0.0.1", "PORT": "443", "DOLLAR": "$(HOST)"}
	for text, want := range map[string]string{
		"-server=https://$(HOST):$(PORT)": "-server=https://10.0.0.1:443",
		"$(UNKNOWN)":                      "$(UNKNOWN)",
		"$$(HOST)":                        "$(HOST)",
		"$$$(HOST)":                       "$10.0.0.1",
		"$(DOLLAR)":                       "$(HOST)",
		"$HOST ${HOST} $()":               "$HOST ${HOST} $()",
	} {
		assert.Equal(t, expand(text, values), want)
	}
}
