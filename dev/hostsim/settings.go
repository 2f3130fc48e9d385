package hostsim

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
)

// Settings are settings.updates of the data store.
type Settings struct {
	// VersionLock is latest (the default), X.Y.Z or vX.Y.Z.
	VersionLock string `json:"version-lock"`
	// IgnoreWaves lifts the waves for refresh and prepare.
	IgnoreWaves bool `json:"ignore-waves"`
	// Seed is the place in the waves; hosts draw one below MaxSeed at their first boot.
	Seed uint32 `json:"seed"`
	// MetadataBaseURL and TargetsBaseURL default to Bottlerocket's own.
	MetadataBaseURL string `json:"metadata-base-url"`
	TargetsBaseURL  string `json:"targets-base-url"`
}

func (s *Settings) fill(variant, arch string) {
	if s.VersionLock == "" {
		s.VersionLock = lockLatest
	}
	if s.MetadataBaseURL == "" {
		s.MetadataBaseURL = "https://updates.bottlerocket.aws/2020-07-07/" + variant + "/" + arch + "/"
	}
	if s.TargetsBaseURL == "" {
		s.TargetsBaseURL = "https://updates.bottlerocket.aws/targets/"
	}
}

func (s *Settings) validate() error {
	if s.VersionLock == lockLatest {
		return nil
	}
	_, err := parseLock(s.VersionLock)
	return errors.WithMessage(err, "version-lock")
}

// settingsPrefix stands before the names of all settings that a host of this package has.
const settingsPrefix = "settings.updates."

// values are the settings by the last part of their names.
func (s *Settings) values() map[string]any {
	return map[string]any{
		"version-lock":      s.VersionLock,
		"ignore-waves":      s.IgnoreWaves,
		"seed":              s.Seed,
		"metadata-base-url": s.MetadataBaseURL,
		"targets-base-url":  s.TargetsBaseURL,
	}
}

// set takes validated values.
func (s *Settings) set(values map[string]any) {
	for name, v := range values {
		switch v := v.(type) {
		case string:
			switch name {
			case "version-lock":
				s.VersionLock = v
			case "metadata-base-url":
				s.MetadataBaseURL = v
			case "targets-base-url":
				s.TargetsBaseURL = v
			}
		case bool:
			s.IgnoreWaves = v
		case uint32:
			s.Seed = v
		}
	}
}

// lockedDown is the data store's answer under F26.
func (h *Host) lockedDown(r Request, now time.Time, doing string) (Answer, bool) {
	_, ok := h.strike(F26, now, func(f Fault) bool { return f.isFor(r) })
	return textAnswer(500, "Data store error during "+doing+": lockdown is in effect"), ok
}

// nested puts the named settings under updates, or leaves nothing when there are none.
func nested(values map[string]any) map[string]any {
	if len(values) == 0 {
		return map[string]any{}
	}
	return map[string]any{"updates": values}
}

// getRoot answers GET /, where prefixes have their settings in front and answers are wrapped.
func (h *Host) getRoot(r Request, now time.Time) Answer {
	q := r.Query
	if a, down := h.lockedDown(r, now, "get_prefix"); down {
		return a
	}
	prefix := q.Get("prefix")
	if q.Has("prefix") && prefix == "" {
		return textAnswer(400, "Input 'prefix' cannot be empty")
	}
	found := nested(h.withPrefix(prefix))
	if len(found) > 0 {
		found = map[string]any{"settings": found}
	}
	return jsonAnswer(found)
}

// getSettings answers GET /settings.
func (h *Host) getSettings(r Request, now time.Time) Answer {
	q := r.Query
	if a, down := h.lockedDown(r, now, "get_prefix"); down {
		return a
	}
	if q.Has("keys") {
		keys := q.Get("keys")
		if keys == "" {
			return textAnswer(400, "Input 'keys' cannot be empty")
		}
		return h.getKeys(strings.Split(keys, ","))
	}
	prefix := q.Get("prefix")
	if q.Has("prefix") && prefix == "" {
		return textAnswer(400, "Input 'prefix' cannot be empty")
	}
	return jsonAnswer(nested(h.withPrefix("settings." + prefix)))
}

func (h *Host) withPrefix(prefix string) map[string]any {
	values := h.settings.values()
	maps.DeleteFunc(values, func(name string, _ any) bool {
		return !strings.HasPrefix(settingsPrefix+name, prefix)
	})
	return values
}

// dataKey is what the data store takes for a dotted name.
var dataKey = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

func (h *Host) getKeys(keys []string) Answer {
	all, found := h.settings.values(), map[string]any{}
	for _, key := range keys {
		if !dataKey.MatchString(key) {
			return textAnswer(400, "Unable to make data key '"+key+"': invalid character in key")
		}
		name, mine := strings.CutPrefix(key, settingsPrefix)
		if v, ok := all[name]; mine && ok {
			found[name] = v
		}
	}
	return jsonAnswer(nested(found))
}

// transaction is the name in ?tx=.
func transaction(q url.Values) string {
	if name := q.Get("tx"); name != "" {
		return name
	}
	return "default"
}

// patchSettings answers PATCH /settings: the values wait in a transaction.
func (h *Host) patchSettings(r Request, now time.Time) Answer {
	if a, down := h.lockedDown(r, now, "set_keys"); down {
		return a
	}
	if r.ContentType != "application/json" {
		return textAnswer(400, "Content type error")
	}
	values, err := decodeSettings(r.Body)
	if err != nil {
		return textAnswer(400, "Json deserialize error: "+err.Error())
	}
	if h.transactions == nil {
		h.transactions = map[string]map[string]any{}
	}
	name := transaction(r.Query)
	if len(values) > 0 && h.transactions[name] == nil {
		h.transactions[name] = map[string]any{}
	}
	maps.Copy(h.transactions[name], values)
	return Answer{Status: 204}
}

// decodeSettings reads a patch of the settings of this host.
func decodeSettings(body []byte) (map[string]any, error) {
	var patch struct {
		Updates struct {
			VersionLock     *string `json:"version-lock"`
			IgnoreWaves     *bool   `json:"ignore-waves"`
			Seed            *uint32 `json:"seed"`
			MetadataBaseURL *string `json:"metadata-base-url"`
			TargetsBaseURL  *string `json:"targets-base-url"`
		} `json:"updates"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&patch); err != nil {
		return nil, err
	}
	values, u := map[string]any{}, patch.Updates
	if u.VersionLock != nil {
		if err := (&Settings{VersionLock: *u.VersionLock}).validate(); err != nil {
			return nil, err
		}
		values["version-lock"] = *u.VersionLock
	}
	if u.IgnoreWaves != nil {
		values["ignore-waves"] = *u.IgnoreWaves
	}
	if u.Seed != nil {
		values["seed"] = *u.Seed
	}
	if u.MetadataBaseURL != nil {
		values["metadata-base-url"] = *u.MetadataBaseURL
	}
	if u.TargetsBaseURL != nil {
		values["targets-base-url"] = *u.TargetsBaseURL
	}
	return values, nil
}

// commit answers POST /tx/commit_and_apply. The updater's configuration follows after the answer.
func (h *Host) commit(r Request, now time.Time) Answer {
	if a, down := h.lockedDown(r, now, "commit"); down {
		return a
	}
	name := transaction(r.Query)
	values := h.transactions[name]
	if len(values) == 0 {
		return textAnswer(422, "Tried to commit with no pending changes")
	}
	delete(h.transactions, name)
	h.settings.set(values)
	h.render(now)
	changed := []string{}
	for name := range values {
		changed = append(changed, settingsPrefix+name)
	}
	slices.Sort(changed)
	return jsonAnswer(changed)
}

func (h *Host) render(now time.Time) {
	if takes := h.cfg.Latencies.Settings; takes > 0 {
		h.renderAt = now.Add(takes)
		return
	}
	h.effective, h.renderAt = h.settings, time.Time{}
}

// SetSettings changes the data store past its API; zero fields get their defaults, and a zero Seed is
// seed 0.
func (h *Host) SetSettings(s Settings) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.fill(h.cfg.Variant, h.cfg.Arch)
	if err := s.validate(); err != nil {
		return errors.WithMessage(err, "set settings")
	}
	now := h.advance()
	h.settings = s
	h.render(now)
	return nil
}
