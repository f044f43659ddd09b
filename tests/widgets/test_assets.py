"""The modules of cgorl/assets: nothing from elsewhere, no name twice, read as JavaScript."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib import resources

import pytest

from cgorl.widgets.assets import module, modules, text

NAMES = sorted(f.name for f in (resources.files("cgorl") / "assets").iterdir() if f.name.endswith(".js"))


@pytest.mark.parametrize("name", [*NAMES, "cgorl.css"])
def test_nothing_is_fetched_from_elsewhere(name: str) -> None:
    assert not re.search(r"https?://|@import|url\(", text(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_module_with_all_it_imports_has_no_name_twice(name: str) -> None:
    whole = module(name)
    assert "import " not in re.sub(r"^\s*//.*$", "", whole, flags=re.M)
    found = re.findall(r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)", whole, re.M)
    assert len(found) == len(set(found))
    assert modules(name)[-1] == name


@pytest.mark.parametrize("name", NAMES)
def test_a_module_is_javascript(name: str) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    ran = subprocess.run([node, "--check", "--input-type=module"], input=module(name), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
