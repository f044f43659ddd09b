"""The jobs that keys with several values come to."""

from __future__ import annotations

from pathlib import Path

import pytest

from cgorl.evaluation.plan import expand, plan
from cgorl.zoo import ZooError


def jobs(*overrides: str) -> list[dict[str, str]]:
    return expand("evaluate", overrides)


def test_the_product_of_everything_in_order() -> None:
    found = jobs("model=a,b", "search=greedy,beam", "seconds=1,2")
    assert len(found) == 8
    assert found[0] == {"model": "a", "search": "greedy", "seconds": "1"} and found[1]["seconds"] == "2"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("seed=1,2,3", ["1", "2", "3"]),
        ("seed=range(1,4)", ["1", "2", "3"]),
        ("search=choice(greedy,beam)", ["greedy", "beam"]),
        ("search=glob(b*)", ["backtracking", "beam"]),
        ("rules.exclude=[layout,sum]", ["[layout,sum]"]),
        ("rules.exclude=[layout],[]", ["[layout]", "[]"]),
        ("dims.x:0=1,2", ["1", "2"]),
        ("seconds=null,3", ["null", "3"]),
        ("model='a, b',c", ["a, b", "c"]),
        ("model=a b.onnx", ["a b.onnx"]),
        ("model=a=b.onnx", ["a=b.onnx"]),
        ("runs=a,b", ["a,b"]),
    ],
)
def test_what_stands_for_several_values(text: str, values: list[str]) -> None:
    key = text.partition("=")[0]
    assert [job[key] for job in jobs(text)] == values


def test_a_file_with_a_comma_in_its_name_is_one_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a,b.onnx").write_text("")
    assert [job["model"] for job in jobs("model=a,b.onnx")] == ["a,b.onnx"]


def test_a_key_of_a_choice_is_for_those_that_have_it() -> None:
    found = jobs("search=greedy,beam", "search.width=4,8", "search.least_ms=0.1")
    assert found == [
        {"search": "greedy", "search.least_ms": "0.1"},
        {"search": "beam", "search.width": "4"},
        {"search": "beam", "search.width": "8"},
    ]
    found = jobs("model=resnet50,bert,x.onnx", "zoo.image=64", "zoo.batch=2")
    assert [sorted(job) for job in found] == [["model", "zoo.batch", "zoo.image"], ["model", "zoo.batch"], ["model"]]


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["model=bert", "search=greedy,beam", "search.widht=3"], "no key 'search.widht'; did you mean 'search.width'?"),
        (["model=bert", "search.width=3"], "no key 'search.width'"),
        (["model=bert", "zoo.image=3"], "no model here has a parameter 'image'; they have batch,"),
        (["model=x.onnx", "zoo.image=3"], "no model here has a parameter 'image'; they have none, being files"),
        (["model=bert", "serch=a,b"], "no key 'serch'; did you mean 'search'?"),
        (["model=bert", "search=greedy,gredy"], "no search=gredy (did you mean 'greedy'?)"),
        (["model=bert", "model=nasrnn"], "'model' is given twice"),
        (["model=bert", "search=glob(z*)"], "'search=glob(z*)' stands for no value"),
        (["model=bert", "seconds=1,abc"], "seconds must be a number of at least 0, or null, not 'abc'"),
        (["model=bert", "--fast"], "should read key=value"),
        (["model=~/a,b"], "put each into quotes"),
        (["search=beam"], "'model' must be given"),
        (["model=bert", "rules.exclude=[nope]"], "no rule or tag 'nope'"),
        (["model=bert", "device.launch_ms=-1,1"], "launch_ms must be a number of at least 0"),
    ],
)
def test_each_mistake_is_told_before_anything_runs(overrides: list[str], says: str) -> None:
    with pytest.raises(ValueError) as caught:
        plan(overrides)
    assert says in str(caught.value) and "\n" not in str(caught.value) and type(caught.value).__module__.startswith("cgorl")


def test_a_model_that_is_no_name_and_no_file() -> None:
    with pytest.raises(ZooError, match="no graph 'inception_v4'"):
        plan(["model=bert,inception_v4"])


def test_searches_without_a_seed_run_once() -> None:
    made = plan(["model=bert", "search=greedy,annealing,beam", "seed=1,2,3"])
    assert [(j.keys["search"], j.keys["seed"]) for j in made.jobs] == [
        *[("greedy", None), ("annealing", 1), ("annealing", 2), ("annealing", 3), ("beam", None)]
    ]
    assert made.once == ("greedy", "beam")
    assert [j.cfg.search.seed for j in made.jobs if j.keys["seed"]] == [1, 2, 3]
    assert plan(["model=bert", "search=greedy,annealing"]).once == ()


def test_columns_are_what_varies_and_what_the_graph_is() -> None:
    job = plan(["model=bert", "zoo.layers=1", "seconds=5", "device=taso,v100", "evaluations=10,20"]).jobs[0]
    assert job.keys == {
        **{"model": "bert", "rules": "default", "device": "taso", "cost": "roofline", "search": "greedy", "seed": None},
        **{"zoo.layers": 1, "budget.evaluations": 10},
    }
    assert job.words == "bert default taso greedy zoo.layers=1 budget.evaluations=10"


def test_jobs_of_one_model_run_one_after_another() -> None:
    made = plan(["search=greedy,beam", "model=bert,nasrnn"])
    assert [(j.number, j.keys["model"]) for j in made.jobs] == [(1, "bert"), (2, "bert"), (3, "nasrnn"), (4, "nasrnn")]


def test_files_of_rules_and_policies_are_told_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("runs/train/one/policy.pt", "policy.pt"):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).touch()
    (tmp_path / "mine.rules").write_text("rule mine: swap\n    Add(x, y)\n => y + x\n")
    found = plan(["model=bert", f"rules.own=null,{tmp_path / 'mine.rules'}"]).jobs
    assert [job.keys["rules.own"] for job in found] == ["null", "mine.rules"]
    found = plan(["model=bert", "search=agent", "search.checkpoint=null,runs/train/one/policy.pt,policy.pt"]).jobs
    assert [job.keys["search.checkpoint"] for job in found] == ["null", "one/policy.pt", "policy.pt"]
