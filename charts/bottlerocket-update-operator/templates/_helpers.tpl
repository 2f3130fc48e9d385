{{/*
The labels of an object or a pod: of the whole, of its component (the second of the list, which may be empty), and yours.
*/}}
{{- define "update-operator.labels" -}}
{{- $top := index . 0 -}}
app.kubernetes.io/name: bottlerocket-update-operator
{{- with index . 1 }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- with $top.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
The annotations of a pod of the component whose values are given: yours come before what tells a Prometheus to scrape it.
*/}}
{{- define "update-operator.podAnnotations" -}}
{{- $scrape := dict "prometheus.io/scrape" "true" "prometheus.io/scheme" "http" "prometheus.io/port" "8080" "prometheus.io/path" "/metrics" -}}
{{- toYaml (merge (dict) (.podAnnotations | default dict) $scrape) -}}
{{- end }}

{{/*
The image: by its digest where one is given, else by its tag, else by the version that this chart is made for.
*/}}
{{- define "update-operator.image" -}}
{{- $name := printf "%s/%s" (trimSuffix "/" .Values.image.registry) .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $name }}@{{ .Values.image.digest }}
{{- else -}}
{{ $name }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/*
Nine tenths of the memory limit of the component whose values are given, as GOMEMLIMIT takes it; empty without a limit.
*/}}
{{- define "update-operator.memoryLimit" -}}
{{- $limit := dig "limits" "memory" "" .resources -}}
{{- $factor := hasSuffix "Gi" $limit | ternary 1024 1 -}}
{{- with $limit -}}
{{ div (mul (trimSuffix "Mi" (trimSuffix "Gi" $limit) | int64) $factor 9) 10 }}MiB
{{- end -}}
{{- end }}
