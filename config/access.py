"""Kubernetes groups that podwright's access entries and role bindings share."""

from typing import Final

NODE_READERS: Final = "podwright:node-readers"
"""May see nodes and nothing else. EKS's own view policies show either no nodes or every secret.

Source: Amazon EKS User Guide, "Review access policy permissions", 2026-11.
"""
