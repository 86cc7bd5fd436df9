"""CUDA's compiler and libraries, as the wheels of the test extra install them."""

from importlib.util import find_spec
from pathlib import Path


def toolkit() -> Path:
    """The folder with `bin/nvcc`; NCCL lies beside it."""
    spec = find_spec("nvidia")
    locations = spec.submodule_search_locations if spec else None
    return next(Path(location, "cu13") for location in locations or () if Path(location, "cu13/bin/nvcc").is_file())
