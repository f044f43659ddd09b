"""Each notebook runs without a front end, twice in one kernel, stays small, and shows something true once the kernel is gone."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
FAST: dict[str, dict[str, Any]] = {
    "01_quickstart": {"zoo": {"image": 32}, "cost": "roofline", "seconds": 2},
    "02_graphs_and_rules": {"model": "squeezenet1_1", "zoo": {"image": 64}, "rule": "relu-maxpool", "node": "stage0/fire1/concat"},
    "03_search_baselines": {"image": 64, "evaluations": 500, "seeds": "1,2"},
    "04_train_an_agent": {"image": 64, "steps": 128, "horizon": 8, "evaluations": 300},
    "05_curiosity_sweep": {"betas": "0.1,0.5", "seeds": "1,2", "steps": 512, "image": 64},
    "06_compare_and_report": {"only": ["squeezenet1_1", "vit"]},
    "07_your_own_rule": {"zoo": {"layers": 2, "image": 32}},
}
"""What takes the place of a notebook's parameters here, so that it is done in seconds; `runs` is a folder of the test's own."""


def read(path: Path) -> Any:
    return pytest.importorskip("nbformat", reason="jupyterlab is not installed (pip install -e '.[dev]')").read(path, as_version=4)


def quickened(path: Path, runs: Path) -> Any:
    """The notebook with a cell behind its parameters that sets others."""
    made = read(path)
    from nbformat.v4 import new_code_cell

    tagged = [k for k, cell in enumerate(made.cells) if "parameters" in cell.metadata.get("tags", ())]
    if tagged:
        own = {t.id for n in ast.walk(ast.parse(made.cells[tagged[0]].source)) if isinstance(n, ast.Name) for t in [n]}
        values = {**FAST.get(path.stem, {}), "runs": str(runs)}
        assert set(FAST.get(path.stem, {})) <= own, "a parameter that the notebook does not have"
        made.cells.insert(tagged[0] + 1, new_code_cell("\n".join(f"{k} = {v!r}" for k, v in values.items() if k in own)))
    return made


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_runs_twice_in_one_kernel_and_is_true_without_it(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # tests run side by side
    client = pytest.importorskip("nbclient", reason="jupyterlab is not installed (pip install -e '.[dev]')")
    made = quickened(path, tmp_path / "runs")
    runner = client.NotebookClient(made, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}})
    with runner.setup_kernel():
        for _ in range(2):
            for k, cell in enumerate(made.cells):
                runner.execute_cell(cell, k)
    said = [o for cell in made.cells for o in cell.get("outputs", ()) if o.output_type == "stream" and o.name == "stderr"]
    assert not said, said
    assert len(json.dumps(made)) < 1_000_000
    from nbconvert import HTMLExporter

    page, _ = HTMLExporter().from_notebook_node(made)
    views = sum("application/vnd.jupyter.widget-view+json" in o.get("data", {}) for cell in made.cells for o in cell.get("outputs", ()))
    pictures = re.findall(r'<div data-cgorl="(\w+)">', page)
    assert len(pictures) == len(set(pictures)) == views, "each widget has its picture"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_says_what_it_is_for_and_defines_nothing_long(path: Path) -> None:
    first, *rest = read(path).cells
    from IPython.core.inputtransformer2 import TransformerManager  # %magic and !command become calls

    title, empty, *purpose = first.source.split("\n")
    assert title.startswith("# ") and not empty and len(purpose) in (2, 3), "a title and two lines on what it is for"
    for cell in rest:
        if cell.cell_type == "code":
            for node in ast.walk(ast.parse(TransformerManager().transform_cell(cell.source))):
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    assert (node.end_lineno or 0) - node.lineno < 5, f"{node.name} belongs into the package"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_links_lead_somewhere(path: Path) -> None:
    links = [a for cell in read(path).cells if cell.cell_type == "markdown" for a in re.findall(r"\]\(([^)]+)\)", cell.source)]
    assert not [a for a in links if not (FOLDER / a).exists()]
