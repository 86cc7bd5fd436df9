"""A plugin of pytest: which test executes which line of the product, and the seconds of each test.

Loaded by `-p contexts`; writes into the coverage map at `$PODWRIGHT_COVERAGE_MAP`. Lines that a module runs while it is
imported belong to no test. A value that is computed once belongs to every test that uses it: cached functions and
properties, fixtures of a class, module or session, and what a test file computes while it is collected. Processes that
a test starts are not measured.
"""

import ast
import functools
import os
import subprocess
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Hashable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import coverage
import pytest

import coverage_map
from coverage_map import Recording, Test

INSTALLED = (".venv", ".podwright")
"""Folders of a checkout with code that is not the product's."""
ASSEMBLIES = "PODWRIGHT_TEST_ASSEMBLIES"
"""Variable with the folder of assemblies that tests share."""


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Start before any conftest.py imports the product."""
    early_config.pluginmanager.register(Recorder(Path.cwd().resolve(), Path(os.environ["PODWRIGHT_COVERAGE_MAP"])))


class Recorder:
    """Records one pytest process."""

    def __init__(self, root: Path, path: Path) -> None:
        self._root = root
        self._path = path
        self._coverage = coverage.Coverage(
            data_file=None,
            config_file=False,
            include=[f"{root}/*"],
            omit=[f"{root}/tests/*", *(f"{root}/{folder}/*" for folder in INSTALLED), "*/site-packages/*"],
            branch=False,
        )
        # The only one that tells contexts apart.
        self._coverage.set_option("run:core", "ctrace")
        self._context = ""
        self._thread = threading.get_ident()
        self._numbers = count()
        self._uses: dict[str, set[str]] = defaultdict(set)
        self._fixtures: dict[pytest.FixtureDef, str] = {}
        self._seconds: dict[str, float] = defaultdict(float)
        self._failed: set[str] = set()
        self._originals = functools.lru_cache, functools.cached_property
        functools.lru_cache = self._lru_cache(functools.lru_cache)  # type: ignore[assignment]
        functools.cached_property = self._cached_property(functools.cached_property)  # type: ignore[misc,assignment]
        self._coverage.start()

    @contextmanager
    def _in(self, context: str) -> Iterator[None]:
        """Count lines for a context, which the surrounding one uses."""
        self._uses[self._context].add(context)
        if threading.get_ident() != self._thread:
            yield
            return
        previous, self._context = self._context, context
        self._coverage.switch_context(context)
        try:
            yield
        finally:
            self._context = previous
            self._coverage.switch_context(previous)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """Synthesize in this process each environment that its tests need, instead of reading another's assembly."""
        if ASSEMBLIES in os.environ:
            os.environ[ASSEMBLIES] = tempfile.mkdtemp(dir=os.environ[ASSEMBLIES])

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        """Count what a test file computes while it is collected for all its tests."""
        with self._in(_of_collection(collector.nodeid)):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef) -> Generator[None, Any, Any]:
        """Count the set-up of a fixture that several tests share for each of them."""
        if fixturedef.scope == "function":
            return (yield)
        self._fixtures[fixturedef] = f"fixture {fixturedef.argname} {next(self._numbers)}"
        with self._in(self._fixtures[fixturedef]):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Count for the test."""
        with self._in(item.nodeid):
            result = yield
        definitions = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
        shared = {self._fixtures.get(each) for several in definitions.values() for each in several}
        self._uses[item.nodeid] |= {_of_collection(item.nodeid), *filter(None, shared)}
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up seconds and outcomes."""
        self._seconds[report.nodeid] += report.duration
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_unconfigure(self) -> None:
        """Write the map."""
        self._coverage.stop()
        functools.lru_cache, functools.cached_property = self._originals
        names: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
        for name in self._seconds:
            names[name.partition("::")[0]][name] = self._closure(name)
        lines, texts = self._measured()
        command = ["git", "rev-parse", "--verify", "--quiet", "HEAD"]
        revision = subprocess.run(command, cwd=self._root, capture_output=True, text=True).stdout.strip()
        recordings = [
            Recording(
                file,
                coverage_map.digest_of((self._root / file).read_text(encoding="utf-8")),
                revision,
                {name: Test(self._seconds[name], name not in self._failed) for name in tests},
                {module: own for module in lines if (own := _of_file(lines[module], tests))},
            )
            for file, tests in names.items()
        ]
        coverage_map.write(self._path, recordings, texts)

    def _measured(self) -> tuple[dict[str, dict[str, set[int]]], dict[str, str]]:
        """Lines by module and context, and the text of each module."""
        data = self._coverage.get_data()
        measured, texts = {}, {}
        for file in sorted(data.measured_files()):
            # Code that templates are compiled to has their names, but other lines.
            if not (file.endswith(".py") and Path(file).is_file()):
                continue
            module = Path(file).relative_to(self._root).as_posix()
            by_context: dict[str, set[int]] = defaultdict(set)
            for line, contexts in data.contexts_by_lineno(file).items():
                for context in contexts:
                    by_context[context].add(line)
            texts[module] = Path(file).read_text(encoding="utf-8")
            measured[module] = _without_imports(by_context, texts[module])
        return measured, texts

    def _closure(self, context: str) -> frozenset[str]:
        """A context and all that it uses."""
        reached, remaining = {context}, [context]
        while remaining:
            more = self._uses.get(remaining.pop(), set()) - reached
            reached |= more
            remaining += more
        return frozenset(reached)

    def _lru_cache(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
            if callable(maxsize):
                return self._cached(maxsize, original(typed=typed), typed)
            return lambda function: self._cached(function, original(maxsize, typed), typed)

        return lru_cache

    def _cached(self, function: Any, decorate: Callable[..., Any], typed: bool) -> Any:
        """A cached function that tells its recorder of every call."""
        if not self._is_own(function):
            return decorate(function)
        contexts: dict[Hashable, str] = {}

        def compute(*args: Any, **kwargs: Any) -> Any:
            key = functools._make_key(args, kwargs, typed)  # type: ignore[attr-defined]
            contexts[key] = f"cache {function.__qualname__} {next(self._numbers)}"
            with self._in(contexts[key]):
                return function(*args, **kwargs)

        cached = decorate(compute)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            value = cached(*args, **kwargs)
            key = functools._make_key(args, kwargs, typed)  # type: ignore[attr-defined]
            self._uses[self._context].add(contexts[key])
            return value

        for name in ("cache_info", "cache_clear", "cache_parameters"):
            setattr(call, name, getattr(cached, name))
        return call

    def _cached_property(self, original: Any) -> Any:
        recorder = self

        class CachedProperty(original):
            """Python calls a descriptor with a setter on each access, also when the instance has the value."""

            def __init__(self, func: Any) -> None:
                super().__init__(func)
                self._is_own = recorder._is_own(func)
                self._contexts: dict[int, str] = {}

            def __get__(self, instance: Any, owner: Any = None) -> Any:
                if instance is None or not self._is_own:
                    return super().__get__(instance, owner)
                if self.attrname in instance.__dict__:
                    recorder._uses[recorder._context] |= {*filter(None, [self._contexts.get(id(instance))])}
                    return instance.__dict__[self.attrname]
                context = f"property {self.attrname} {next(recorder._numbers)}"
                self._contexts[id(instance)] = context
                with recorder._in(context):
                    return super().__get__(instance, owner)

            def __set__(self, instance: Any, value: Any) -> None:
                instance.__dict__[self.attrname] = value

            def __delete__(self, instance: Any) -> None:
                del instance.__dict__[self.attrname]

        return CachedProperty

    def _is_own(self, function: Any) -> bool:
        code = getattr(function, "__code__", None)
        if code is None:
            return False
        file = Path(code.co_filename).resolve()
        installed = any(file.is_relative_to(self._root / folder) for folder in INSTALLED)
        return file.is_relative_to(self._root) and not installed


def _of_file(by_context: dict[str, set[int]], tests: dict[str, frozenset[str]]) -> dict[str | None, set[int]]:
    """The lines of a module by the tests of a file, given the contexts of each."""
    own: dict[str | None, set[int]] = {None: by_context[""]} if by_context[""] else {}
    for name, contexts in tests.items():
        if used := contexts & by_context.keys():
            own[name] = set().union(*(by_context[context] for context in used))
    return own


def _of_collection(node: str) -> str:
    """The context of a test file's collection."""
    return f"collect {node.partition('::')[0]}"


def _without_imports(by_context: dict[str, set[int]], text: str) -> dict[str, set[int]]:
    """Move lines outside functions that ran while a test file was collected to the context of imports."""
    collected = [context for context in by_context if context.startswith("collect ")]
    inside: set[int] = set()
    for node in ast.walk(ast.parse(text)) if collected else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside |= {*range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)}
    by_context[""] |= {line for context in collected for line in by_context[context] - inside}
    for context in collected:
        by_context[context] &= inside
    return by_context
