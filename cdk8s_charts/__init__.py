"""Reusable cdk8s charts: the Kubernetes manifests that a cluster needs, one concept a file."""
