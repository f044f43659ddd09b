"""What tells jobs apart, in few words."""

from cgorl.report.experiment.words import method, problem, varied

ICM, COUNT = "cgorl.agent.icm.ICM", "cgorl.agent.icm.Count"


def test_seeds_and_places_tell_nothing() -> None:
    assert varied([{"seed": 1, "search.seed": 1, "runs": "a"}, {"seed": 2, "search.seed": 2, "runs": "b"}]) == []


def test_a_group_is_told_by_its_class_and_by_what_differs_within_one() -> None:
    jobs = [{"icm._target_": ICM, "icm.beta": 0.1, "icm.hidden": 8}, {"icm._target_": ICM, "icm.beta": 0.2, "icm.hidden": 8}]
    jobs += [{"icm._target_": COUNT, "icm.eta": 1.0}, {"icm": {}}]
    keys = varied(jobs)
    assert [method(j, keys) for j in jobs] == ["icm=icm icm.beta=0.1", "icm=icm icm.beta=0.2", "icm=count", "icm=none"]


def test_what_is_optimized_is_part_of_the_problem() -> None:
    jobs = [{"model": "a.onnx", "zoo.image": 32, "icm.beta": 0.1}, {"model": "a.onnx", "zoo.image": 64, "icm.beta": 0.1}]
    keys = varied(jobs)
    assert keys == ["zoo.image"] and method(jobs[0], keys) == "" and problem(jobs[1], keys, "a") == "a zoo.image=64"


def test_values_are_told_as_they_are_written() -> None:
    jobs = [{"a": 0.30000000000000004, "b": [1, 2]}, {"a": 1e-05, "b": [1]}]
    assert method(jobs[0], varied(jobs)) == "a=0.3 b=[1, 2]" and method(jobs[1], varied(jobs)) == "a=1e-05 b=[1]"
