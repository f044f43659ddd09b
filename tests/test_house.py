"""The house stands: pins in step, nothing heavy imported or tracked, notebooks clean, data shipped."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
LAUNCHERS = ("ray", "slurm")
"""Extras for sweeps on other machines: large, of use to few, and not among the pins."""
EXTRAS: dict[str, list[str]] = {k: v for k, v in PROJECT["optional-dependencies"].items() if k not in LAUNCHERS}
NAMED = [Requirement(line) for line in sum(EXTRAS.values(), PROJECT["dependencies"])]
TORCH = "==2.13.0"


def pins() -> dict[str, str]:
    """Version by canonical name, from constraints.txt, each line of which must be an exact pin."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    versions = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    assert len(versions) == len(lines), "a package is pinned twice"
    return versions


def tracked() -> list[Path]:
    """Files that git tracks, or would track after `git add`."""
    git = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if git.returncode:
        pytest.skip("not a git checkout")
    return [path for name in git.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def installed_closure(requirements: Iterable[Requirement]) -> dict[str, str]:
    """Version by canonical name of all installed packages that the requirements need, directly or not."""
    found: dict[str, str] = {}
    queue, seen = list(requirements), set()
    while queue:
        need = queue.pop()
        name = canonicalize_name(need.name)
        if (name, frozenset(need.extras)) in seen:
            continue
        seen.add((name, frozenset(need.extras)))
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # an extra that is not installed here
        found[name] = package.version.partition("+")[0]
        if name == "torch":
            continue  # what it needs depends on the build: CPU, or one of several accelerators
        for child in map(Requirement, package.requires or []):
            if child.marker is None or any(child.marker.evaluate({"extra": extra}) for extra in ("", *need.extras)):
                queue.append(child)
    return found


@pytest.mark.parametrize("requirement", NAMED, ids=str)
def test_each_named_package_is_pinned_to_a_version_it_allows(requirement: Requirement) -> None:
    assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)])


@pytest.mark.skipif(sys.platform != "linux", reason="the pins were resolved on Linux: other systems need a few packages more")
def test_the_environment_is_the_pinned_one() -> None:
    pinned = pins()
    differing = {name: (found, pinned.get(name)) for name, found in installed_closure(NAMED).items() if found != pinned.get(name)}
    assert not differing, "installed, pinned: a package is missing from constraints.txt, or this environment was not made from it"


def test_the_pins_install_on_the_oldest_python() -> None:
    oldest = PROJECT["requires-python"].removeprefix(">=") + ".0"
    for name in installed_closure(NAMED):
        needs = metadata.metadata(name).get("Requires-Python") or ">=3"
        assert Requirement(f"{name}{needs}").specifier.contains(oldest), f"{name} needs Python {needs}"


def test_the_build_uses_the_pinned_setuptools() -> None:
    assert PYPROJECT["build-system"]["requires"] == [f"setuptools=={pins()['setuptools']}"]


def test_torch_has_one_version_everywhere() -> None:
    assert [str(need.specifier) for need in NAMED if need.name == "torch"] == [TORCH]
    for name in ("constraints.txt", "environment.yml", "Makefile", ".ci/run", "README.md"):
        text = (ROOT / name).read_text() if (ROOT / name).exists() else ""
        assert set(re.findall(r"\btorch\s*([=<>~!]=?[^\s'\"`,)]+)", text)) <= {TORCH}, name


def test_conda_users_get_the_same_set() -> None:
    python, pip, from_pip = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    assert Requirement("python" + PROJECT["requires-python"]).specifier.contains(python.removeprefix("python="))
    assert pip == "pip"
    assert from_pip == {"pip": ["-c constraints.txt", f"-e .[{','.join(sorted(EXTRAS))}]"]}


def test_every_install_is_constrained() -> None:
    makefile = (ROOT / "Makefile").read_text()
    installs = re.findall(r"^\t.*pip install.*$", makefile, re.MULTILINE)
    assert installs
    assert all("-c constraints.txt" in line for line in installs)
    for stamp in re.findall(r"\$\(VENV\)/\.([a-z,]+)-\$\(PINS\)", makefile):
        assert set(stamp.split(",")) <= set(EXTRAS)


def test_no_file_is_above_two_megabytes() -> None:
    assert [str(path.relative_to(ROOT)) for path in tracked() if path.stat().st_size > 2_000_000] == []


def test_each_data_file_of_the_package_ships() -> None:
    globs = PYPROJECT["tool"]["setuptools"]["package-data"]["cgorl"]
    data = [
        path.relative_to(ROOT / "cgorl").as_posix() for path in tracked() if path.is_relative_to(ROOT / "cgorl") and path.suffix != ".py"
    ]
    assert [path for path in data if not any(fnmatch(path, glob) for glob in globs)] == []


def test_notebooks_carry_no_outputs() -> None:
    for path in (ROOT / "notebooks").glob("**/*.ipynb"):
        if ".ipynb_checkpoints" in path.parts:
            continue
        cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        assert not any(cell["outputs"] or cell["execution_count"] for cell in cells), f"run: .venv/bin/nbstripout {path.relative_to(ROOT)}"


@pytest.mark.parametrize("module", ["cgorl", "cgorl.pipeline"])
def test_the_engine_starts_without_the_heavy_packages(module: str) -> None:
    if not (ROOT / module.replace(".", "/")).with_suffix(".py").exists() and module != "cgorl":
        pytest.skip(f"{module} does not exist yet")
    heavy = ["torch", "torch_geometric", "hydra", "omegaconf", "pandas", "matplotlib", "wandb"]
    script = f"import sys, {module}; print(*sorted(set({heavy}) & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, ""), run.stderr
