"""Side by side: files of one model run in turn and compared, in a process of its own, so that a runtime that crashes costs no more."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from cgorl.certificate.equivalence import interface_difference
from cgorl.certificate.inputs import feeds
from cgorl.certificate.pair import judge
from cgorl.certificate.rewrite import relative_error
from cgorl.gate import ORIGINAL
from cgorl.gate.runner import Run, even
from cgorl.gate.sessions import Sessions
from cgorl.gate.timing import Runner
from cgorl.ir.graph import Graph
from cgorl.ir.onnx_io import load
from cgorl.ir.oracle import run_float64
from cgorl.ir.run import RunError, Session, short
from cgorl.ir.sizes import symbols
from cgorl.ir.tensor import Array
from cgorl.ir.to_proto import complete

OPENVINO = "OpenVINO"
_SEEDS = 3


@dataclass(frozen=True, slots=True)
class Seen:
    """One file beside the original: its median CPU and wall time in ms, (middle, low, high) of the original's time over its own.

    `error` is the largest difference of an output, relative; `why` says what is wrong, or what kept it from being run; `note`
    what is otherwise in its interface.
    """

    cpu_ms: float = 0.0
    wall_ms: float = 0.0
    ratio: tuple[float, ...] | None = None
    runs: int = 0
    error: float = 0.0
    why: str = ""
    over: Mapping[str, tuple[float, ...]] | None = None
    """Of the last file: how many times as fast as each other one it is."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: what it wrote, how long it took in s, and what went wrong (empty: nothing)."""

    out: str
    seconds: float
    why: str = ""


def apart(command: Sequence[str], timeout: float) -> Ended:
    """Runs a command in a process group of its own, at one thread, and ends all of it after `timeout` seconds."""
    begin = time.monotonic()
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, env=env) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException as e:  # Ctrl-C too must not leave it running
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if not isinstance(e, subprocess.TimeoutExpired):
                raise
            return Ended("", time.monotonic() - begin, f"not done after {timeout:g} s")
    took = time.monotonic() - begin
    if process.returncode == 0:
        return Ended(out, took)
    said = next((line.strip() for line in reversed(err.splitlines()) if line.strip()), "")
    number = -process.returncode
    how = f"crashed ({signal.Signals(number).name})" if number > 0 else f"exit code {process.returncode}"
    return Ended(out, took, f"{how}: {said}"[:200] if said and number <= 0 else how)


def side_by_side(
    original: Path, files: Mapping[str, Path], sizes: Mapping[str, int], seconds: float, openvino: bool = False, seed: int = 0
) -> dict[str, Seen]:
    """What was seen of the original and of each file, by name, in a process of its own; `openvino` runs the original there too.

    `sizes` are those of the model's symbols, 1 for those that it does not name. Where the process dies, it is tried without
    OpenVINO, and then every file is said to have crashed.
    """
    told: dict[str, Any] = {"original": str(original), "files": {n: str(p) for n, p in files.items()}, "sizes": dict(sizes)}
    code = "import json, sys; from cgorl.report import side; print(json.dumps(side.answer(json.loads(sys.argv[1]))))"
    for second in (True, False) if openvino else (False,):
        job = json.dumps({**told, "seconds": seconds, "openvino": second, "seed": seed})
        ended = apart([sys.executable, "-c", code, job], 600 + 3 * seconds)
        if not ended.why:
            found = {n: Seen(**s) for n, s in json.loads(ended.out.splitlines()[-1]).items()}
            return found if second or not openvino else {**found, OPENVINO: Seen(why="crashed")}
    return {n: Seen(why=f"measuring it {ended.why}") for n in (ORIGINAL, *files)}


def answer(told: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What `side_by_side` asks of its process, as JSON data."""
    files = {n: Path(p) for n, p in told["files"].items()}
    found = _measure(Path(told["original"]), files, told["sizes"], told["seconds"], told["openvino"], told["seed"])
    return {n: asdict(s) for n, s in found.items()}


def _measure(
    original: Path, files: Mapping[str, Path], sizes: Mapping[str, int], seconds: float, openvino: bool, seed: int
) -> dict[str, Seen]:
    model = load(original)
    dims = {s: sizes.get(s, 1) for s in symbols(model)}
    rng = np.random.default_rng(seed)
    found, runs = dict[str, Seen](), dict[str, Run]()
    for mode in ("random", "ones", "zeros"):
        given = feeds(model, dims, np.random.default_rng(seed), mode)
        try:
            runs[ORIGINAL] = Run(original, given)
            break
        except RunError as e:
            found[ORIGINAL] = found.get(ORIGINAL, Seen(why=f"does not run: {e}"))
    if not runs:
        return {**found, **{n: Seen(why="the original does not run") for n in files}}
    for name, path in files.items():
        try:
            error, why = _agree(model, original, path, [feeds(model, dims, np.random.default_rng(k), mode) for k in range(_SEEDS)])
            found[name] = Seen(error=error, why=why, note=interface_difference(model, load(path)))
            runs[name] = Run(path, given)
        except ValueError as e:
            found[name] = Seen(why=f"does not run: {short(e)}")
    even(runs.values())
    second: dict[str, Runner] = {}
    if openvino:
        try:
            second[OPENVINO] = made = _OpenVino(original, given, runs[ORIGINAL].times)
            found[OPENVINO] = Seen(error=made.error(original, given))
        except Exception as e:  # its exceptions share no base class
            found[OPENVINO] = Seen(why=f"does not run: {short(e)}")
    names = [ORIGINAL, *(n for n in files if n in runs)]
    makers: dict[str, Callable[[], Runner]] = {n: runs[n].again for n in names}
    makers |= {n: partial(second.__getitem__, n) for n in second}
    sessions = Sessions(makers, rng)
    sessions.run(seconds)
    if sessions.interrupted:
        raise KeyboardInterrupt
    last = list(files)[-1] if files else ""
    over = {n: tuple(sessions.timings(n)[last].ratio) for n in (*names, *second) if last in runs and n != last}
    for name, t in sessions.timings(ORIGINAL).items():
        was = found.get(name, Seen())
        more = {"over": over if name == last else None, "note": was.note}
        found[name] = Seen(t.cpu_ms, t.wall_ms, tuple(t.ratio), t.runs, was.error, was.why, **more)  # type: ignore[arg-type]
    return {n: found[n] for n in (ORIGINAL, *files, OPENVINO) if n in found}


def _agree(model: Graph, original: Path, path: Path, feeds: Sequence[Mapping[str, Array]]) -> tuple[float, str]:
    """The largest relative difference of an output, run without the runtime's own rewrites, and what is wrong with it.

    Where it is beyond rounding, the original in float64 is asked, as in a proof.
    """
    first, second = Session(original), Session(path)
    if missing := [n for n in first.outputs if n not in second.outputs]:
        return float("inf"), f"there is no output '{missing[0]}'"
    worst = 0.0
    for given in feeds:
        before, after = (s.run({n: given[n] for n in s.inputs if n in given}, first.outputs) for s in (first, second))
        truth = lru_cache(partial(_truth, model, given))
        for name, x in before.items():
            error, why, _ = judge(name, x, after[name], lambda name=name, truth=truth: truth().get(name))  # type: ignore[misc]
            worst = max(worst, error)
            if why:
                return worst, why
    return worst, ""


def _truth(model: Graph, given: Mapping[str, Array]) -> Mapping[str, Any]:
    try:
        return run_float64(complete(model), given)
    except Exception:  # the reference evaluator raises whatever numpy does
        return {}


class _OpenVino:
    """A model run by OpenVINO at one thread in 32-bit floats; the CPU time is that of the process, since its threads are its own."""

    def __init__(self, path: Path, feeds: Mapping[str, Array], times: int) -> None:
        ov: Any = importlib.import_module("openvino")
        how = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1}
        compiled = ov.Core().compile_model(str(path), "CPU", how)
        names = {n for i in compiled.inputs for n in i.get_names()}
        self._request, self._given, self._times = compiled.create_infer_request(), {k: v for k, v in feeds.items() if k in names}, times
        self._request.infer(self._given)

    def __call__(self) -> tuple[float, float]:
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        for _ in range(self._times):
            self._request.infer(self._given)
        each = 1e6 * self._times
        return (time.process_time_ns() - cpu) / each, (time.perf_counter_ns() - wall) / each

    def error(self, path: Path, feeds: Mapping[str, Array]) -> float:
        """The largest difference of its outputs from onnxruntime's, relative."""
        theirs = Run(path, feeds).outputs()
        self._request.infer(self._given)
        mine = [np.array(self._request.get_output_tensor(k).data) for k in range(len(theirs))]
        return max((relative_error(a, b) for a, b in zip(theirs, mine, strict=True) if isinstance(a, np.ndarray)), default=0.0)
