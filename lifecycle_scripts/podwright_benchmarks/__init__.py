"""Measures a node: its GPUs or Neuron devices, their links, EFA and the shared file system. Standard library only."""

from .run import run as run
