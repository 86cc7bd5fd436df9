"""Kueue's values through the real `helm template`."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from podwright.config.catalog.charts import KUEUE, chart
from podwright.config.loading.artifacts import stand_in_archive
from podwright.config.settings.governance.teams import Governance
from podwright.operations.programs.helm import render
from podwright.planning.helm.chart_values import HEALTH_TOLERATION, SystemPlacement
from podwright.planning.helm.kueue_values import kueue_values, manager_configuration

GOVERNANCE = Governance.model_validate({"engine": "kueue", "wait_for_pods": {"tries": 3}})
# As Kueue's own chart reads what it is given: it parses the text, and asks which frameworks are on for its webhooks.
TEMPLATE = """
{{- $config := .Values.managerConfig.controllerManagerConfigYaml | fromYaml }}
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-manager-config, namespace: {{ .Release.Namespace }}}
data:
  pods: {{ ternary "Fail" "Ignore" (has "pod" $config.integrations.frameworks) }}
  controller_manager_config.yaml: |
{{ $config | toYaml | indent 4 }}
---
tolerations: {{ .Values.controllerManager.tolerations | toJson }}
"""


@pytest.fixture
def rendered(tmp_path: Path) -> list[dict[str, Any]]:
    (tmp_path / "Chart.yaml").write_text("{apiVersion: v2, name: kueue, version: 0.19.2}")
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates/manager.yaml").write_text(TEMPLATE)
    values = kueue_values(chart(KUEUE), GOVERNANCE, SystemPlacement({"group": "system"}, (HEALTH_TOLERATION,)))
    return list(yaml.safe_load_all(render(stand_in_archive(KUEUE, tmp_path), chart(KUEUE), values)))


def test_helm_reads_the_configuration_as_it_was_meant(rendered: list[dict[str, Any]]) -> None:
    manager, rest = rendered
    assert manager["metadata"] == {"name": "kueue-manager-config", "namespace": "kueue-system"}
    assert yaml.safe_load(manager["data"]["controller_manager_config.yaml"]) == manager_configuration(GOVERNANCE)
    assert manager["data"]["pods"] == "Fail"
    assert rest["tolerations"][0]["key"] == "sagemaker.amazonaws.com/node-health-status"
