"""Persists the sandbox's state, of moto's back-ends and podwright's services, in a snapshot.

It contains all that an API returns: stacks and their events, resources, objects in buckets, clusters and nodes, and
Kubernetes objects. Running invocations of functions are lost. A snapshot belongs to one version of moto, Python and the
sandbox. Another version starts empty, and logs that.

Contents above 64 KiB, such as assets, are in separate files named by their digest, so a snapshot stays small.
"""

import copyreg
import json
import marshal
import os
import pickle
import sys
import threading
import types
import weakref
from collections import defaultdict
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from moto.core.base_backend import BackendDict
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy

from ..protocol.contents import Contents
from ..services.buckets import LARGE

# Version of the snapshot's form. Snapshots with another version are not read.
_FORMAT = 8
_ATTEMPTS = 20
State = dict[str, Any]


def _fingerprint() -> tuple[str, ...]:
    return (str(_FORMAT), version("moto"), version("cryptography"), sys.version)


def _lock() -> Any:
    return threading.RLock()


def _key(text: bytes) -> Any:
    return serialization.load_pem_private_key(text, None)


def _function(code: bytes, module: str, name: str, defaults: tuple[Any, ...] | None, cells: list[Any]) -> Any:
    return types.FunctionType(
        marshal.loads(code),
        vars(sys.modules[module]),
        name,
        defaults,
        tuple(types.CellType(cell) for cell in cells) or None,
    )


class _Pickler(pickle.Pickler):
    """Pickles moto's back-ends, which contain locks, private keys and local functions."""

    def __init__(self, file: IO[bytes], contents: Contents):
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.contents = contents

    def persistent_id(self, obj: Any) -> Any:
        """Return a reference to large contents in files, and to moto's copies of AWS's managed policies."""
        if type(obj) is AWSManagedPolicy:
            return obj.arn, obj.account_id, obj.attachment_count
        if type(obj) is not bytes or len(obj) < LARGE:
            return None
        return self.contents.keep(obj)

    def reducer_override(self, obj: Any) -> Any:
        """Return the constructors of objects that pickle does not support."""
        if isinstance(obj, _LOCK_TYPES):
            return _lock, ()
        if isinstance(obj, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
            return _key, (
                obj.private_bytes(
                    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
                ),
            )
        if isinstance(obj, defaultdict) and type(obj) is not defaultdict:
            # The constructor needs arguments, but its attributes and items suffice.
            state = (vars(obj), {"default_factory": obj.default_factory})
            return copyreg.__newobj__, (type(obj),), state, None, iter(obj.items())  # pyrefly: ignore[missing-attribute]
        if isinstance(obj, weakref.WeakValueDictionary):
            return weakref.WeakValueDictionary, (dict(obj),)
        if isinstance(obj, types.FunctionType) and "<" in obj.__qualname__:
            cells = [cell.cell_contents for cell in obj.__closure__ or ()]
            return _function, (marshal.dumps(obj.__code__), obj.__module__, obj.__name__, obj.__defaults__, cells)
        return NotImplemented


_LOCK_TYPES = (type(threading.RLock()), type(threading.Lock()))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes], contents: Contents):
        super().__init__(file)
        self.contents, self.partitions = contents, set[str]()

        self.policies: dict[str, AWSManagedPolicy] = {}

    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, str):
            return self.contents.file(pid).read_bytes()
        arn, account, attachments = pid
        partition = arn.split(":")[1]
        if partition not in self.partitions:
            self.partitions.add(partition)
            for name, data in json.loads(aws_managed_policies_data).items():
                policy = AWSManagedPolicy.from_data(name, account, partition, data)
                self.policies[policy.arn] = policy
        self.policies[arn].attachment_count = attachments
        return self.policies[arn]


def _moto_state() -> State:
    created: list[Any] = BackendDict._instances  # pyrefly: ignore[missing-attribute]
    return {backends.service_name: _by_account(backends) for backends in created}


def _by_account(backends: Any) -> State:
    return {account: dict(regions.items()) for account, regions in backends.items()}


def _restore_moto(state: State) -> None:
    from moto.backends import get_backend

    for service, accounts in state.items():
        backends: Any = get_backend(service)  # pyrefly: ignore[no-matching-overload]
        for account, regions in accounts.items():
            for region, backend in regions.items():
                dict.__setitem__(backends[account], region, backend)


class DamagedSnapshot(Exception):
    """A snapshot cannot be read. The message contains the file and the reason."""


class Snapshots:
    """Writes and reads snapshots in a directory. `collect` returns podwright's state, `restore` sets it."""

    def __init__(
        self, directory: Path, contents: Contents, collect: Callable[[], State], restore: Callable[[State], None]
    ):
        self.file, self.contents = directory / "snapshot", contents
        # Its descriptor stays that of this directory, whatever is at the path later.
        self._directory = os.open(directory, os.O_RDONLY)
        self.collect, self.restore = collect, restore
        self.foreign = False
        """True if `load` has ignored a snapshot of another version."""
        self._saving = threading.Lock()

    def save(self) -> None:
        """Write a snapshot, again if other threads change the state meanwhile.

        Nothing is written if the directory was deleted: another sandbox may have one at its path by now.
        """
        with self._saving:
            partial = self.file.with_suffix(".new").name
            for attempt in range(_ATTEMPTS):
                try:
                    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666, dir_fd=self._directory)
                except FileNotFoundError:
                    return
                try:
                    with os.fdopen(descriptor, "wb") as file:
                        self._write(file)
                    break
                except RuntimeError:  # a dictionary changed its size while it was pickled
                    if attempt == _ATTEMPTS - 1:
                        raise
            # The file is always a complete snapshot, even if the process is killed here.
            os.rename(partial, self.file.name, src_dir_fd=self._directory, dst_dir_fd=self._directory)

    def _write(self, file: IO[bytes]) -> None:
        pickler = _Pickler(file, self.contents)
        pickler.dump(_fingerprint())
        pickler.dump((_moto_state(), self.collect()))

    def load(self) -> bool:
        """Restore the last snapshot. Returns False without one, or if another version wrote it.

        Raises DamagedSnapshot if it cannot be read.
        """
        if not self.file.exists():
            return False
        with self.file.open("rb") as file:
            unpickler = _Unpickler(file, self.contents)
            try:
                self.foreign = unpickler.load() != _fingerprint()
                if self.foreign:
                    return False
                moto, own = unpickler.load()
            # Unpickling damaged bytes may raise any exception.
            except Exception as error:
                raise DamagedSnapshot(
                    f"{self.file} is damaged and cannot be read back ({type(error).__name__}: {error})"
                ) from error
        _restore_moto(moto)
        self.restore(own)
        return True
