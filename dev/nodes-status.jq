# One line for each labelled node, from `kubectl get nodes -o json`: what is wanted of its agent, the
# agent's answer, and what the node waits for. Columns are separated by tabs.
def mark($key): .metadata.annotations["bottlerocket.aws/" + $key] // "" | if . == "" then "-" else . end;

# A node may say anything, and a terminal obeys some of it.
def plain: .[0:400] | gsub("[\\s\\p{Z}]+"; " ") | gsub("\\p{C}"; "?");

["NODE", "READY", "CORDONED", "VERSION", "AVAILABLE", "WANTED", "TARGET", "ANSWER", "WAITING FOR"],
(
  .items
  | map(select(.metadata.labels // {} | has("bottlerocket.aws/updater-interface-version") or has("bottlerocket.aws/platform-version")))
  | sort_by(.metadata.name)[]
  | (.metadata.annotations // {}) as $a
  | [
      .metadata.name,
      ([.status.conditions[]? | select(.type == "Ready") | .status][0] // "-"),
      (if .spec.unschedulable then "yes" else "no" end),
      mark("current-version"), mark("available-version"), mark("action-wanted"), mark("target-version"),
      # An answer to an older intent says nothing about this one.
      (if $a["bottlerocket.aws/active-id"] == $a["bottlerocket.aws/intent-id"] then mark("action-state") else "-" end),
      mark("waiting-for")
    ]
)
| map(plain) | @tsv
