"""How jobs find the environment's MLflow app: by a config map of their team's namespace.

The app's ARN is known once it is made, and manifests of jobs are written without asking AWS.
"""

from typing import Final

MLFLOW: Final = "podwright-mlflow"
"""The config map."""
TRACKING_URI: Final = "MLFLOW_TRACKING_URI"
"""Its key, and the variable that MLflow's clients read. Source: SageMaker Developer Guide, "Integrate MLflow with your
environment", 2026-11."""
