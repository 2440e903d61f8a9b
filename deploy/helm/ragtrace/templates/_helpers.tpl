{{- define "ragtrace.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "ragtrace.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ default (include "ragtrace.fullname" .) .Values.serviceAccount.name }}{{ else }}{{ required "serviceAccount.name: name the account to use, since serviceAccount.create is false" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{- define "ragtrace.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}{{ end }}
{{- end }}

{{- /* Labels of one component; the argument is a dict of root and component. */ -}}
{{- define "ragtrace.selector" -}}
app.kubernetes.io/name: ragtrace
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "ragtrace.labels" -}}
{{ include "ragtrace.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- /* Whether the replicas of a component are left to an autoscaler. */ -}}
{{- define "ragtrace.scaled" -}}
{{- $c := index .root.Values .component -}}
{{- if eq .component "serve" }}{{ if $c.autoscaling.enabled }}yes{{ end }}{{ else if ne $c.autoscaling.mode "none" }}yes{{ end }}
{{- end }}

{{- /* Most pods that share the judge's budget. Without an autoscaler these are the replicas. */ -}}
{{- define "ragtrace.maxPods" -}}
{{- $n := 0 -}}
{{- range $component := list "serve" "worker" -}}
{{- $c := index $.Values $component -}}
{{- if $c.enabled -}}
{{- $most := $c.replicas -}}
{{- if include "ragtrace.scaled" (dict "root" $ "component" $component) }}{{ $most = max $c.maxReplicas $c.replicas }}{{ end -}}
{{- $n = add $n $most -}}
{{- end -}}
{{- end -}}
{{ max 1 $n }}
{{- end }}

{{- /* A pod's part of a limit of all pods, rounded down so that the parts never add up to more. 0 is no limit, so a part is at least 1. */ -}}
{{- define "ragtrace.perPod" -}}
{{- $all := int64 .all -}}
{{- if $all }}{{ max 1 (div $all (include "ragtrace.maxPods" .root | int)) }}{{ else }}0{{ end }}
{{- end }}

{{- /* Dollars a day that each pod may spend. */ -}}
{{- define "ragtrace.dollarsPerPod" -}}
{{- divf .Values.judge.budgetUsdPerDay (include "ragtrace.maxPods" .) | printf "%.2f" | trimSuffix ".00" }}
{{- end }}

{{- /* Whether a model outside the pod is asked; the judge overlap asks none. */ -}}
{{- define "ragtrace.asksModel" -}}
{{- if or (ne .Values.judge.name "overlap") (hasPrefix "openai:" (get .Values.settings "RAGTRACE_EMBEDDER")) }}yes{{ end }}
{{- end }}

{{- /* Every contradiction that would only show in a pod's log. */ -}}
{{- define "ragtrace.check" -}}
{{- if not (or .Values.serve.enabled .Values.worker.enabled) }}{{ fail "serve.enabled and worker.enabled are both false: nothing would run" }}{{ end -}}
{{- if and .Values.worker.enabled (not .Values.kafka.brokers) }}{{ fail "kafka.brokers: the worker reads Kafka; give HOST:PORT, or set worker.enabled=false" }}{{ end -}}
{{- if and (contains "openai:" .Values.judge.name) (not .Values.judge.keyless) (not .Values.judge.existingSecret) }}{{ fail (printf "judge.existingSecret: the judge %s needs a key; create a Secret with it and give its name, or set judge.keyless=true" .Values.judge.name) }}{{ end -}}
{{- if and (eq (float64 .Values.judge.budgetUsdPerDay) 0.0) (not .Values.judge.unlimited) }}{{ fail "judge.budgetUsdPerDay: 0 means no limit; give a number above 0, or set judge.unlimited=true" }}{{ end -}}
{{- $own := list "RAGTRACE_JUDGE" "RAGTRACE_JUDGE_BASE_URL" "RAGTRACE_BUDGET_USD_PER_DAY" "RAGTRACE_SPOOL" "RAGTRACE_QUEUE" "RAGTRACE_STORE" "RAGTRACE_STORE_BYTES" "RAGTRACE_HEALTH_HOST" "RAGTRACE_HEALTH_PORT" "RAGTRACE_METRICS_HOST" "RAGTRACE_METRICS_PORT" "RAGTRACE_KAFKA_CONFIG" -}}
{{- $secret := list "RAGTRACE_JUDGE_API_KEY" "RAGTRACE_ID_KEY" "PHOENIX_API_KEY" "LANGFUSE_PUBLIC_KEY" "LANGFUSE_SECRET_KEY" "MLFLOW_TRACKING_PASSWORD" "MLFLOW_TRACKING_TOKEN" "RAGTRACE_WEBHOOK_URL" "RAGTRACE_WEBHOOK_SECRET" -}}
{{- range $name, $value := .Values.settings -}}
{{- if has $name $own }}{{ fail (printf "settings.%s: the chart sets it; use the values judge, serve, worker, kafka or metrics" $name) }}{{ end -}}
{{- if regexMatch "^RAGTRACE_(PHOENIX|LANGFUSE|MLFLOW)_" $name }}{{ fail (printf "settings.%s is gone: docs/how-to/upgrade.md says what to write; a key goes into a Secret, and its name into secretSettings" $name) }}{{ end -}}
{{- if or (has $name $secret) (and (eq $name "RAGTRACE_SINKS") (contains "webhook:" $value)) }}{{ fail (printf "settings.%s is a secret: put it into a Secret under that name, and name the Secret in secretSettings; of RAGTRACE_SINKS=webhook:ADDRESS take RAGTRACE_WEBHOOK_URL; a judge's key goes into judge.existingSecret" $name) }}{{ end -}}
{{- end -}}
{{- if and .Values.serve.enabled .Values.serve.requireToken (not .Values.serve.token.existingSecret) }}{{ fail "serve.token.existingSecret: the receiver listens on 0.0.0.0; name a Secret with a token, or set serve.requireToken=false" }}{{ end -}}
{{- end }}

{{- /* The consumer group; the default is that of `ragtrace worker`. */ -}}
{{- define "ragtrace.group" -}}
{{- default (printf "ragtrace.%s" .Values.kafka.topic) .Values.kafka.group }}
{{- end }}

{{- /* The port of the judge, from its address. */ -}}
{{- define "ragtrace.judgePort" -}}
{{- $url := .Values.judge.baseUrl -}}
{{- $host := regexReplaceAll "^https?://([^/]*@)?([^/?#]*).*$" $url "${2}" -}}
{{- if regexMatch ":[0-9]+$" $host }}{{ regexFind "[0-9]+$" $host }}{{ else if hasPrefix "http://" $url }}80{{ else }}443{{ end }}
{{- end }}

{{- define "ragtrace.secretEnv" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret }}
      key: {{ .key }}
{{- end }}

{{- define "ragtrace.env" -}}
{{- $c := index .root.Values .component -}}
{{- with .root }}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: OTEL_SERVICE_NAME
  value: ragtrace-{{ $.component }}
# ragtrace.internal keeps what these pods emit out of scoring (deploy/collector/config.yaml).
- name: OTEL_RESOURCE_ATTRIBUTES
  value: service.instance.id=$(POD_NAME),ragtrace.internal=true
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .Values.otlp.endpoint | quote }}
- name: OTEL_EXPORTER_OTLP_PROTOCOL
  value: {{ .Values.otlp.protocol }}
- name: RAGTRACE_JUDGE
  value: {{ .Values.judge.name | quote }}
{{- with .Values.judge.baseUrl }}
- name: RAGTRACE_JUDGE_BASE_URL
  value: {{ . | quote }}
{{- end }}
- name: RAGTRACE_BUDGET_USD_PER_DAY
  value: {{ divf (include "ragtrace.perPod" (dict "root" . "all" (mulf .Values.judge.budgetUsdPerDay 1000000))) 1000000 | quote }}
{{- $limits := dict "RAGTRACE_BUDGET_TOKENS_PER_DAY" "20000000" "RAGTRACE_JUDGE_RPM" "500" "RAGTRACE_JUDGE_TPM" "200000" }}
{{- range $name, $default := $limits }}
- name: {{ $name }}
  value: {{ include "ragtrace.perPod" (dict "root" $.root "all" (get $.root.Values.settings $name | default $default)) | quote }}
{{- end }}
# Spent budgets stand in these files, and survive a crash of the process.
{{- if eq $.component "serve" }}
- name: RAGTRACE_SPOOL
  value: /var/lib/ragtrace/spool.sqlite
{{- end }}
- name: RAGTRACE_STORE
  value: /var/lib/ragtrace/store.sqlite
- name: RAGTRACE_STORE_BYTES
  value: {{ $c.storeBytes | int64 | quote }}
- name: RAGTRACE_HEALTH_HOST
  value: "0.0.0.0"
- name: RAGTRACE_HEALTH_PORT
  value: "8081"
{{- if .Values.metrics.enabled }}
- name: RAGTRACE_METRICS_HOST
  value: "0.0.0.0"
- name: RAGTRACE_METRICS_PORT
  value: {{ .Values.metrics.port | quote }}
{{- end }}
{{- $settings := .Values.settings }}
{{- if and (eq $.component "worker") (not .Values.worker.checks) }}
{{- $settings = merge (dict) $settings (dict "RAGTRACE_CANARY_EVERY_S" "0" "RAGTRACE_ANCHORS_EVERY_S" "0") }}
{{- end }}
{{- range $name, $value := $settings }}{{ if not (hasKey $limits $name) }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}{{ end }}
{{- with .Values.judge }}{{ if .existingSecret }}
{{ include "ragtrace.secretEnv" (dict "name" "RAGTRACE_JUDGE_API_KEY" "secret" .existingSecret "key" .secretKey) }}
{{- end }}{{ end }}
{{- with .Values.otlp }}{{ if .existingSecret }}
{{ include "ragtrace.secretEnv" (dict "name" "OTEL_EXPORTER_OTLP_HEADERS" "secret" .existingSecret "key" .secretKey) }}
{{- end }}{{ end }}
{{- end }}
{{- end }}

{{- /* Secrets that a component reads as files, as a map from the folder to the Secret. */ -}}
{{- define "ragtrace.files" -}}
{{- $c := index .root.Values .component -}}
{{- $found := dict -}}
{{- if eq .component "serve" -}}
{{- range $kind := list "tls" "token" }}{{ with (index $c $kind).existingSecret }}{{ $_ := set $found $kind . }}{{ end }}{{ end -}}
{{- else -}}
{{- with .root.Values.kafka.existingSecret }}{{ $_ := set $found "kafka" . }}{{ end -}}
{{- end -}}
{{ toJson $found }}
{{- end }}

{{- define "ragtrace.args" -}}
{{- if eq .component "serve" }}
- serve
- --grpc=0.0.0.0:{{ .root.Values.serve.ports.grpc }}
- --http=0.0.0.0:{{ .root.Values.serve.ports.http }}
{{- if .root.Values.serve.token.existingSecret }}
- --token-file=/etc/ragtrace/token/{{ .root.Values.serve.token.secretKey }}
{{- end }}
{{- if .root.Values.serve.tls.existingSecret }}
- --tls-cert=/etc/ragtrace/tls/tls.crt
- --tls-key=/etc/ragtrace/tls/tls.key
{{- end }}
{{- else }}
- worker
- --kafka={{ .root.Values.kafka.brokers }}
- --topic={{ .root.Values.kafka.topic }}
{{- with .root.Values.kafka.group }}
- --group={{ . }}
{{- end }}
{{- if .root.Values.kafka.existingSecret }}
- --kafka-config=/etc/ragtrace/kafka/{{ .root.Values.kafka.secretKey }}
{{- end }}
{{- end }}
- --deadline={{ sub (index .root.Values .component).terminationGracePeriodSeconds 20 }}
{{- range (index .root.Values .component).extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}
