"""The layout of the checkout: rooms, folders, names."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON_ROOMS = ("config", "planning", "constructs", "cdk8s_charts", "stacks", "operations", "sandbox", "bin")
ROOMS = (*PYTHON_ROOMS, "lifecycle_scripts", "environments", "docs", "tests")
MOST_MODULES = 20


def files() -> list[Path]:
    return [
        file
        for room in (*ROOMS, ".ci")
        for file in (ROOT / room).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    ]


def test_nothing_else_holds_code() -> None:
    others = [
        entry.name
        for entry in ROOT.iterdir()
        if entry.is_dir() and not entry.name.startswith(".") and entry.name not in ROOMS and any(entry.rglob("*.py"))
    ]
    assert [name for name in others if name not in ("build", "cdk.out")] == []
    assert list(ROOT.glob("*.py")) == []


def test_constructs_is_no_package_of_its_own() -> None:
    """With an __init__.py and the checkout on sys.path, `import aws_cdk` would find our room for PyPI's constructs."""
    assert not (ROOT / "constructs/__init__.py").exists()
    program = "import aws_cdk, constructs; print(constructs.__file__)"
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert "site-packages" in result.stdout, result.stderr


def test_rooms_are_typed() -> None:
    assert [room for room in PYTHON_ROOMS if not (ROOT / room / "py.typed").is_file()] == []


def test_no_folder_holds_more_than_a_person_reads_at_once() -> None:
    modules = Counter(
        file.parent for room in (*PYTHON_ROOMS, "lifecycle_scripts") for file in (ROOT / room).rglob("*.py")
    )
    many = {str(folder.relative_to(ROOT)): count for folder, count in modules.items() if count > MOST_MODULES + 1}
    assert many == {}


def test_no_module_is_a_drawer_for_anything() -> None:
    assert [file for file in files() if file.stem in ("utils", "util", "helpers", "misc")] == []


def test_test_files_have_names_of_their_own() -> None:
    """pytest's importlib mode has no packages: two files of one name would be told apart by folder alone."""
    names = Counter(file.name for file in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
    assert list((ROOT / "tests").rglob("__init__.py")) == []
