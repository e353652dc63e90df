{{- define "sluice.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "sluice.secret" -}}
{{ .Values.existingSecret | default (include "sluice.name" .) }}
{{- end }}

{{- define "sluice.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "sluice.labels" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "sluice.database" -}}
- name: SLUICE_DATABASE_URL
  valueFrom:
    secretKeyRef: { name: {{ include "sluice.secret" . }}, key: database-url }
{{- end }}

{{- define "sluice.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}
