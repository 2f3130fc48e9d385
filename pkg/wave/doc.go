// Package wave is when a release of Bottlerocket opens to a host, by the host's place in the waves, its seed.
//
// It is for what is shown of versions. A host tells its seed and not the waves of a release, so all of it holds for
// releases with Bottlerocket's default waves alone, and no decision may be made on it.
//
// It is pure: it imports nothing but time.
package wave
