"""About: the machine, the versions, and which extras of cgorl are installed here."""

from __future__ import annotations

import platform
from html import escape
from importlib import metadata
from typing import NamedTuple

from packaging.requirements import Requirement

from cgorl.report.provenance import provenance

_PACKAGES = ("onnxruntime", "onnx", "numpy", "torch", "jupyterlab")
_FOR = {
    "agent": "train an agent, and search with one",
    "bench": "other optimizers, to measure against",
    "dev": "tests and checks of cgorl itself",
    "lab": "notebooks and widgets",
    "ray": "sweeps on a cluster of Ray",
    "report": "figures and tables",
    "slurm": "sweeps on a cluster of SLURM",
    "sweep": "trainings side by side",
    "wandb": "reports of Weights & Biases",
    "web": "the service",
}


class Extra(NamedTuple):
    """A set of packages that cgorl does without until one needs it; `missing` says what of it is not there."""

    name: str
    purpose: str
    missing: tuple[str, ...]

    @property
    def state(self) -> str:
        """Installed, or what is missing and how it is had."""
        if not self.missing:
            return "installed"
        return f"without {', '.join(self.missing)}: pip install -c constraints.txt -e '.[{self.name}]'"


class About(NamedTuple):
    """Facts by name, and the extras; shown as a table in a notebook."""

    facts: tuple[tuple[str, str], ...]
    extras: tuple[Extra, ...]

    def __str__(self) -> str:
        """The same as lines of text."""
        rows = [*self.facts, *((e.name, f"{e.purpose}: {e.state}") for e in self.extras)]
        return "\n".join(f"{name:12s} {told}" for name, told in rows)

    def _repr_html_(self) -> str:
        left = 'style="text-align:left"'
        facts = "".join(f"<tr><th {left}>{escape(k)}</th><td {left} colspan=2>{escape(v)}</td></tr>" for k, v in self.facts)
        head = f"<tr><th {left}>extra</th><th {left}>for</th><th {left}>here</th></tr>"
        told = ((e.name, e.purpose, e.state) for e in self.extras)
        rows = "".join("<tr>" + "".join(f"<td {left}>{escape(c)}</td>" for c in cells) + "</tr>" for cells in told)
        return f"<table>{facts}{head}{rows}</table>"


def about() -> About:
    """What there is here: processor, system, versions, and each extra of cgorl."""
    origin = provenance()
    versions = ", ".join(f"{name} {found}" for name in _PACKAGES if (found := _version(name)))
    facts = (
        ("cgorl", f"{metadata.version('cgorl')}, commit {origin['commit']}"),
        ("machine", f"{origin['machine']}, {platform.system()} {platform.machine()}"),
        ("packages", versions),
    )
    needs = [Requirement(text) for text in metadata.requires("cgorl") or ()]
    names = sorted(metadata.metadata("cgorl").get_all("Provides-Extra") or ())
    return About(facts, tuple(Extra(name, _FOR.get(name, ""), _missing(name, needs)) for name in names))


def _missing(extra: str, needs: list[Requirement]) -> tuple[str, ...]:
    mine = [n for n in needs if n.marker is not None and n.marker.evaluate({"extra": extra}) and not n.marker.evaluate({"extra": ""})]
    return tuple(str(n).partition(";")[0].strip() for n in mine if not ((v := _version(n.name)) and n.specifier.contains(v)))


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
