"""Does what killing.py does, with a node that installs software. Usage as there; `node` has `software` settings."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import fake_node
import killing
import software_services


def make_node(folder: Path, *, software: dict[str, Any], file_systems: None, **options: Any) -> fake_node.FakeNode:
    """In place of fake_node's. Its image has a newer EFA than is asked for, so that an older one has to come."""
    node = software_services.software_node(folder, software, **options)
    node.put("opt/amazon/efa_installed_packages", "# EFA installer version: 1.51.0\n# Packages installed:\n")
    return node


if __name__ == "__main__":
    fake_node.make_node = make_node  # pyrefly: ignore[bad-assignment]
    with tempfile.TemporaryDirectory(prefix="podwright-fakes-") as fakes:
        shutil.copytree(fake_node.FAKES, fakes, dirs_exist_ok=True)
        for fake in software_services.fakes():
            shutil.copy(fake, fakes)
        fake_node.FAKES = Path(fakes)
        killing.main()
