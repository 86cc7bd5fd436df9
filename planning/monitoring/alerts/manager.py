"""How alerts reach people: the alert manager's definition, with one message for mail and one for chat.

The alert manager publishes to SNS, and a topic carries the same text to all who subscribed. Mail wants sentences, and
the chat service shows nothing but JSON of its own shape (Amazon Q Developer in chat applications Administrator Guide,
"Custom notifications", 2026-11), so there are two topics, and each gets a message of its own.
"""

from typing import Any, Final

import yaml

TEMPLATES: Final = "podwright"
"""Name of the file with the templates."""
_MOST_SHOWN: Final = 10
"""Alerts of a group that a message lists; it says how many more there are."""

# Alerts of one kind in one cluster are one message. Somebody has to look at a critical one, so it comes again sooner.
_ROUTE: Final = {
    "receiver": "people",
    "group_by": ["alertname", "cluster_name", "severity"],
    "group_wait": "1m",
    "group_interval": "10m",
    "repeat_interval": "1d",
    "routes": [
        {
            "receiver": "people",
            "matchers": ['severity="critical"'],
            "group_wait": "15s",
            "group_interval": "5m",
            "repeat_interval": "4h",
        }
    ],
}

# What is left unsaid while a graver alert, or the cause, is out.
_INHIBITED: Final = (
    ("NodeMetricsMissing", "GpuMetricsMissing|ExporterDown", ()),
    ("NodeReplacementSlow", "NodeUnhealthy|NodeNotReady", ("node",)),
    ("NodeRebootSlow", "NodeUnhealthy|NodeNotReady", ("node",)),
    ("NodeUnhealthy", "NodeNotReady", ("node",)),
    ("PlanEnding", "PlanEndsSoon", ("plan",)),
    ("LustreFillsSoon", "LustreFull", ("mountpoint",)),
    ("JobHanging", "GpuUtilizationLow", ("namespace",)),
)

_ESCAPED = r"""{{ define "podwright.escaped" -}}
{{ reReplaceAll "[\t\r\n]+" " " (reReplaceAll "\"" "\\\"" (reReplaceAll "\\\\" "\\\\" .)) }}
{{- end }}"""

_TITLE = """{{ define "podwright.title" -}}
{{ if eq .Status "firing" }}{{ .CommonLabels.severity | toUpper }}{{ else }}RESOLVED{{ end }}: \
{{ .GroupLabels.alertname }} in {{ .GroupLabels.cluster_name }}
{{- end }}"""

_MAIL = """{{ define "podwright.mail" -}}
{{ range $i, $alert := .Alerts.Firing }}{{ if lt $i %(most)d }}{{ .Annotations.summary }}.
  Since {{ .StartsAt.UTC.Format "2006-01-02 15:04" }} UTC.
{{ end }}{{ end }}\
{{ if gt (len .Alerts.Firing) %(most)d }}There are {{ len .Alerts.Firing }} in all.
{{ end }}\
{{ if .Alerts.Resolved }}
No longer:
{{ range $i, $alert := .Alerts.Resolved }}{{ if lt $i %(most)d }}{{ .Annotations.summary }}.
  Until {{ .EndsAt.UTC.Format "2006-01-02 15:04" }} UTC.
{{ end }}{{ end }}{{ end }}
What it means and what to do: podwright explain {{ .GroupLabels.alertname }}
{{ end }}"""

_LINE = (
    '{{ if lt $i %(most)d }}- {{ template "podwright.escaped" .Annotations.summary }} '
    '({{ %(word)s }} {{ %(time)s.UTC.Format "15:04" }} UTC)\\n{{ end }}'
)
_CHAT = (
    '{{ define "podwright.chat" -}}\n'
    '{"version": "1.0", "source": "custom", "content": {"textType": "client-markdown", '
    '"title": "{{ template "podwright.title" . }}", "description": "'
    "{{ range $i, $alert := .Alerts.Firing }}%(firing)s{{ end }}"
    "{{ if gt (len .Alerts.Firing) %(most)d }}{{ len .Alerts.Firing }} in all.\\n{{ end }}"
    "{{ if .Alerts.Resolved }}*No longer:*\\n{{ range $i, $alert := .Alerts.Resolved }}%(resolved)s{{ end }}{{ end }}"
    '", "nextSteps": ["Read `podwright explain {{ .GroupLabels.alertname }}`", '
    '"Look at the cluster: `podwright doctor {{ .GroupLabels.cluster_name }}`"]}, '
    # Chat keeps what has the same thread together, so what resolves stands below what fired.
    '"metadata": {"threadId": "{{ .GroupLabels.alertname }}-{{ .GroupLabels.cluster_name }}", '
    '"summary": "{{ template "podwright.title" . }}", '
    '"additionalContext": {"severity": "{{ .GroupLabels.severity }}", "status": "{{ .Status }}"}}}\n'
    "{{- end }}"
)


def templates() -> str:
    """The templates of both messages, in Go's language for them."""
    firing = _LINE % {"most": _MOST_SHOWN, "word": '"since"', "time": ".StartsAt"}
    resolved = _LINE % {"most": _MOST_SHOWN, "word": '"until"', "time": ".EndsAt"}
    mail = _MAIL % {"most": _MOST_SHOWN}
    chat = _CHAT % {"most": _MOST_SHOWN, "firing": firing, "resolved": resolved}
    return "\n".join((_ESCAPED, _TITLE, mail, chat))


def manager_config(topics: dict[str, str], region: str) -> dict[str, Any]:
    """The alert manager's own configuration.

    Args:
        topics: ARN of the topic for `mail` and of that for `chat`, or of one of them.
        region: Their region.
    """
    sns = [
        {
            "topic_arn": arn,
            "sigv4": {"region": region},
            # SNS takes a hundred ASCII characters, and the service cuts what is longer.
            "subject": '{{ template "podwright.title" . }}',
            "message": f'{{{{ template "podwright.{kind}" . }}}}',
            "send_resolved": True,
        }
        for kind, arn in topics.items()
    ]
    inhibited = [
        {
            "source_matchers": [f'alertname="{source}"'],
            "target_matchers": [f'alertname=~"{target}"'],
            "equal": ["cluster_name", *equal],
        }
        for source, target, equal in _INHIBITED
    ]
    return {
        "templates": [TEMPLATES],
        "route": _ROUTE,
        "receivers": [{"name": "people", "sns_configs": sns}],
        "inhibit_rules": inhibited,
    }


def definition(topics: dict[str, str], region: str) -> str:
    """The definition that the service takes: configuration and templates, as YAML.

    Source: Amazon Managed Service for Prometheus User Guide, "Create an alert manager configuration", 2026-11.
    """
    config = as_yaml(manager_config(topics, region))
    return as_yaml({"alertmanager_config": config, "template_files": {TEMPLATES: templates()}})


class _Dumper(yaml.CSafeDumper):
    """libyaml's, which takes a tenth of the time of one in Python. What comes twice is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    quoted = '"' if "'" in text and ": " in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else quoted)


_Dumper.add_representer(str, _text)


def as_yaml(value: Any) -> str:
    """A value as YAML, the same each time, with texts of several lines as blocks.

    No line is folded, so that a value that only a deployment knows stays whole.
    """
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)
