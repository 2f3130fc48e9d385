package notice

import (
	"strings"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// Message is what the receiver gets, as JSON. Text is the field that Slack, Mattermost and Rocket.Chat show.
type Message struct {
	Text    string   `json:"text"`
	Cluster string   `json:"cluster,omitempty"`
	Notices []Notice `json:"notices"`
}

// MessageOf returns the message that tells these things.
func MessageOf(cluster string, told []Notice) Message {
	lines := make([]string, 0, len(told))
	for _, n := range told {
		// What was kept in between may have been written by anything that may write ConfigMaps.
		lines = append(lines, escape(plain.Line(n.Message, maxMessage)))
	}
	text := strings.Join(lines, "\n")
	if cluster != "" {
		text = escape(cluster) + ": " + strings.Join(lines, "\n"+escape(cluster)+": ")
	}
	return Message{Text: text, Cluster: cluster, Notices: told}
}

// escape keeps what agents and hosts say from being read as markup, such as a mention of a channel.
// https://docs.slack.dev/messaging/formatting-message-text names the first three characters. The others' mentions begin
// with the fourth alone, and it has no escape, so the character of full width stands for it.
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "＠").Replace(text)
}
