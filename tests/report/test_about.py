"""About: what is here is said, and what is missing, with how it is had."""

from __future__ import annotations

from packaging.requirements import Requirement

from cgorl.report import about as module
from cgorl.report.about import About, Extra, about


def test_machine_versions_and_every_extra_are_told() -> None:
    found = about()
    assert [k for k, _ in found.facts] == ["cgorl", "machine", "packages"] and "onnxruntime 1." in str(found)
    extras = {e.name: e for e in found.extras}
    assert set(extras) == set(module._FOR), "an extra without a word on what it is for"
    assert extras["dev"].state == "installed" and all(e.name in found._repr_html_() for e in found.extras)


def test_what_is_missing_is_named() -> None:
    needs = [Requirement(f"{name}; extra == 'x'") for name in ("numpy>=1", "numpy>=999", "no-such-package>=2")] + [Requirement("numpy")]
    assert module._missing("x", needs) == ("numpy>=999", "no-such-package>=2") and module._missing("y", needs) == ()
    told = Extra("x", "nothing", module._missing("x", needs)).state
    assert told == "without numpy>=999, no-such-package>=2: pip install -c constraints.txt -e '.[x]'"
    assert "numpy&gt;=999" in About((), (Extra("x", "nothing", ("numpy>=999",)),))._repr_html_()
