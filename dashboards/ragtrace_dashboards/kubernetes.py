"""The rules and boards of a pack as objects of Kubernetes.

Rules are PrometheusRule objects of the Prometheus Operator. Boards are ConfigMaps that the sidecar of Grafana's
Helm chart looks for. Each has to stay below 262,144 bytes, the room of the annotation in which ``kubectl apply``
keeps an object.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER: Final = "kubernetes"
RELEASE: Final = "kube-prometheus-stack"
"""Name of the Helm release whose Prometheus loads the rules: it looks for its own name in the label ``release``."""


def kubernetes_files(pack: Mapping[str, str]) -> dict[str, str]:
    r"""Return the text of each object by its path, made of the pack's rule files and boards.

    Example:
        >>> pack = {"rules/ragtrace-alerts.yaml": "groups:\n- name: ragtrace-alerts\n"}
        >>> print(kubernetes_files(pack)["kubernetes/ragtrace-alerts.yaml"], end="")
        apiVersion: monitoring.coreos.com/v1
        kind: PrometheusRule
        metadata:
          name: ragtrace-alerts
          labels:
            app.kubernetes.io/part-of: ragtrace
            release: kube-prometheus-stack
        spec:
          groups:
          - name: ragtrace-alerts
    """
    found = {}
    for path, text in pack.items():
        file = PurePosixPath(path)
        target = f"{FOLDER}/{file.stem}.yaml"
        if file.parts[0] == "rules":
            found[target] = _object("monitoring.coreos.com/v1", "PrometheusRule", file.stem, f"release: {RELEASE}")
            found[target] += f"spec:\n{textwrap.indent(text, '  ')}"
        elif file.suffix == ".json":
            small = json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)
            found[target] = _object("v1", "ConfigMap", file.stem, 'grafana_dashboard: "1"')
            found[target] += f"data:\n  {file.name}: |\n    {small}\n"
    return found


def _object(version: str, kind: str, name: str, label: str) -> str:
    return (
        f"apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: {name}\n  labels:\n"
        f"    app.kubernetes.io/part-of: ragtrace\n    {label}\n"
    )
