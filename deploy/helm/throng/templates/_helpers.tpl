{{- define "throng.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "throng.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "throng.labels" -}}
{{ include "throng.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end -}}

{{- define "throng.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "throng.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "throng.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* Fails for missing values without a default, with the remedy. */}}
{{- define "throng.required" -}}
{{- if not .Values.config -}}
{{- fail "config is empty: give the daemon's configuration (--set-file config=throng.toml)" -}}
{{- end -}}
{{- if not .Values.secret.name -}}
{{- fail "secret.name is empty: create the Secret that keys the digests of subjects (see values.yaml) and name it" -}}
{{- end -}}
{{- if and (not .Values.pages.token.name) (not .Values.pages.open) -}}
{{- fail "pages.token.name is empty: name the Secret with the token of the pages, or set pages.open=true to show them to everyone who can reach the pod" -}}
{{- end -}}
{{- if and .Values.strimzi.user.enabled (not .Values.strimzi.cluster) -}}
{{- fail "strimzi.user.enabled requires strimzi.cluster, the name of the Kafka resource" -}}
{{- end -}}
{{- if and .Values.strimzi.topics.enabled (not .Values.strimzi.cluster) -}}
{{- fail "strimzi.topics.enabled requires strimzi.cluster, the name of the Kafka resource" -}}
{{- end -}}
{{- if or .Values.strimzi.user.enabled .Values.strimzi.topics.enabled -}}
{{- $kafka := .Values.kafka -}}
{{- if or (not $kafka.source.topics) (not $kafka.sink.topic) (not $kafka.sink.deadLetterTopic) (not $kafka.sink.changelogTopic) (not $kafka.group) -}}
{{- fail "strimzi requires kafka.group, kafka.source.topics, kafka.sink.topic, kafka.sink.deadLetterTopic and kafka.sink.changelogTopic: rights and topics are derived from them" -}}
{{- end -}}
{{- if and (contains "{group}" $kafka.sink.topic) (not .Values.strimzi.topics.sink) -}}
{{- fail "kafka.sink.topic contains {group}: name the topics, one per group, in strimzi.topics.sink" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The topics of released records, as a list. */}}
{{- define "throng.sinkTopics" -}}
{{- .Values.strimzi.topics.sink | default (list .Values.kafka.sink.topic) | toJson -}}
{{- end -}}

{{/* Values of a text key in all tables with a header of the configuration, as a list: (list CONFIG "[join]]" KEY), the header without
its first bracket. */}}
{{- define "throng.configured" -}}
{{- $table := index . 1 -}}
{{- $key := printf "(?m)^[ \\t]*%s[ \\t]*=[ \\t]*[\"'][^\"'\\n]+" (index . 2) -}}
{{- $found := list -}}
{{- range regexSplit "(?m)^[ \\t]*\\[" (index . 0) -1 -}}
{{- if hasPrefix $table . -}}
{{- with regexFind $key . -}}
{{- $found = append $found (regexReplaceAll "^[^\"']*[\"']" . "") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found | uniq | toJson -}}
{{- end -}}

{{/* Kubernetes name of a topic; with a few digits of its hash if characters were replaced, so that names stay distinct. */}}
{{- define "throng.topicResource" -}}
{{- $plain := . | lower | replace "_" "-" | trimAll "-." -}}
{{- if eq $plain . -}}
{{- $plain -}}
{{- else -}}
{{- printf "%s-%s" ($plain | trunc 200 | trimAll "-.") (. | sha256sum | trunc 8) -}}
{{- end -}}
{{- end -}}

{{- define "throng.strimziVersion" -}}
{{- if .Values.strimzi.apiVersion -}}
{{- .Values.strimzi.apiVersion -}}
{{- else if .Capabilities.APIVersions.Has "kafka.strimzi.io/v1" -}}
kafka.strimzi.io/v1
{{- else -}}
kafka.strimzi.io/v1beta2
{{- end -}}
{{- end -}}
