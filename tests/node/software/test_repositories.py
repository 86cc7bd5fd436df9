"""Package managers that see no repository: the real dnf and the real apt do what an installer needs, and no more."""

import os
import subprocess
from pathlib import Path

from fake_node import SCRIPTS
from needs import needs_programs

SCRIPT = SCRIPTS / "podwright_node/software/without_repositories.sh"
SPEC = "Name: {0}\nVersion: 1.0\nRelease: 1\nSummary: a\nLicense: a\nBuildArch: noarch\n%description\na\n%files\n"


def hidden(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """What a command says that runs without repositories."""
    alone = ["unshare", "--mount", *([] if os.getuid() == 0 else ["--user", "--map-root-user"])]
    words = [*alone, "bash", str(SCRIPT), str(root).rstrip("/"), "/", *command]
    return subprocess.run(words, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})


@needs_programs("dnf", "rpmbuild", package="dnf and rpm")
def test_dnf_installs_files_and_finds_what_is_installed(folder: Path) -> None:
    packages: dict[str, str] = {}
    for name in ("first", "second"):
        (folder / f"{name}.spec").write_text(SPEC.format(name))
        command = ["rpmbuild", "-bb", "--define", f"_topdir {folder}/build", f"{name}.spec"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        packages[name] = str(folder / f"build/RPMS/noarch/{name}-1.0-1.noarch.rpm")
    root = folder / "root"
    repositories = root / "etc/yum.repos.d"
    repositories.mkdir(parents=True)
    (repositories / "amazonlinux.repo").write_text("[amazonlinux]\nname=a\nbaseurl=http://127.0.0.1:9/\nenabled=1\n")
    options = [f"--installroot={root}", f"--setopt=reposdir={repositories}", f"--setopt=cachedir={folder}/cache"]
    dnf = ["dnf", "-y", *options, "--releasever=2023", "--nogpgcheck", "install"]
    for name in packages:
        result = hidden(root, *dnf, packages[name])
        assert result.returncode == 0, result.stdout + result.stderr
    result = hidden(root, *dnf, "first", "second")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "already installed" in result.stdout
    missing = hidden(root, *dnf, "kernel-devel")
    assert missing.returncode != 0
    assert "No match for argument: kernel-devel" in missing.stdout + missing.stderr
    assert "amazonlinux" not in missing.stdout + missing.stderr
    # Outside of it the list is what it was, and dnf asks the repository that nobody reaches.
    assert [file.name for file in repositories.iterdir()] == ["amazonlinux.repo"]
    plain = subprocess.run([*dnf, "kernel-devel"], capture_output=True, text=True)
    assert "amazonlinux" in plain.stdout + plain.stderr


@needs_programs("apt-get", package="apt")
def test_apt_finds_what_is_installed_and_nothing_else(folder: Path) -> None:
    installed = hidden(Path("/"), "apt-get", "install", "--simulate", "tar")
    assert installed.returncode == 0, installed.stderr
    assert "tar is already the newest version" in installed.stdout
    missing = hidden(Path("/"), "apt-get", "install", "--simulate", "linux-headers-0")
    assert missing.returncode != 0
    assert "Unable to locate package linux-headers-0" in missing.stderr
