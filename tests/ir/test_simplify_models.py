"""simplify on models that nobody here wrote: onnx's backend node tests, the light models of its package, and real exports.

Of the 1,884 node models 1,526 run in onnxruntime and 160 in the reference evaluator; 198 (Cast with round_mode, float8, int4,
int2, images) run in neither, and simplify must leave them as they are.
"""

import functools
import importlib.util
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.backend.test.case.node import collect_testcases

from cgorl.ir.from_proto import from_proto
from cgorl.ir.oracle import run_reference
from cgorl.ir.run import random_array
from cgorl.ir.simplify import simplify
from cgorl.ir.to_proto import complete
from tests.bits import outputs, same

SHARED = Path(__file__).resolve().parents[3] / "shared" / "models"
LIGHT = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("*.onnx"))
CHUNKS = 16

OTHER_BITS = {
    "test_attention_4d_fp16_expanded": "onnxruntime computes float16 in float32 and rounds only where no such node follows",
    "test_attention_4d_gqa_with_past_and_present_fp16_expanded": "the same: without Identity nodes between there are fewer roundings",
    "test_attention_4d_causal_fp16_expanded": "the same; the reference evaluator gives the same bits before and after",
    **dict.fromkeys(
        ("test_bernoulli", "test_bernoulli_double", "test_bernoulli_expanded", "test_bernoulli_double_expanded"),
        "random without a seed: not the same twice",
    ),
}
"""Node tests whose outputs are not the same bits after simplify, with the reason; all others are."""

NOT_AS_RECORDED = {
    **dict.fromkeys(
        (
            "test_attention_4d_with_past_and_present_qk_matmul_bias_3d_mask_causal",
            "test_attention_4d_with_past_and_present_qk_matmul_bias_4d_mask_causal",
            "test_attention_4d_causal_fp16",
            "test_maxunpool_export_with_output_shape",
            "test_resize_downsample_scales_linear_align_corners",
            "test_resize_downsample_scales_cubic_align_corners",
            "test_dft", "test_dft_axis", "test_dft_inverse", "test_dft_rfft", "test_dft_irfft",
            "test_dft_opset19", "test_dft_axis_opset19", "test_dft_inverse_opset19", "test_dft_rfft_opset19", "test_dft_irfft_opset19",
            "test_stft", "test_stft_with_window",
        ),
        "onnxruntime differs from the record on the model as it was too",
    ),
    **dict.fromkeys(
        (
            "test_attention_4d_causal_bf16_expanded", "test_attention_4d_padded_kv_bf16_expanded",
            "test_attention_4d_causal_padded_kv_bf16_expanded", "test_attention_4d_attn_mask_causal_bf16_expanded",
            "test_attention_3d_causal_bf16_expanded", "test_quantizelinear_blocked_symmetric",
        ),
        "the reference evaluator differs from the record on the model as it was too",
    ),
    **dict.fromkeys(
        ("test_bernoulli", "test_bernoulli_double", "test_bernoulli_seed", "test_bernoulli_expanded", "test_bernoulli_double_expanded",
         "test_bernoulli_seed_expanded"),
        "random: no two implementations agree",
    ),
}  # fmt: skip
"""Node tests that miss the recorded outputs, before simplify and after."""


@functools.cache
def cases() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(collect_testcases(None))


def runs(before: onnx.ModelProto, after: onnx.ModelProto, given: dict[str, Any]) -> tuple[list[Any], list[Any]] | None:
    """Outputs of both by the first runtime that runs the first."""
    for run in (outputs, lambda m, f: list(run_reference(m, f).values())):
        try:
            was = run(before, given)
        except Exception:
            continue
        return was, run(after, given)
    return None


def close(recorded: Any, found: Any, rtol: float, atol: float) -> bool:
    if recorded is None:
        return found is None
    if isinstance(recorded, list):
        return len(recorded) == len(found) and all(close(r, f, rtol, atol) for r, f in zip(recorded, found, strict=True))
    a, b = np.asarray(recorded), np.asarray(found)
    if a.dtype.kind in "OSU":
        return bool(a.tolist() == b.tolist())
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    return a.shape == b.shape and np.allclose(a.astype(wide), b.astype(wide), rtol, atol, equal_nan=True)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_node_models_keep_their_recorded_outputs(chunk: int) -> None:
    wrong, other_bits, off_record = [], set(), set()
    chosen = cases()[chunk::CHUNKS]
    for case in chosen:
        copy = onnx.ModelProto.FromString(case.model.SerializeToString())
        done = simplify(from_proto(copy))
        after = complete(done.graph)
        if simplify(done.graph).steps:
            wrong.append(f"{case.name}: simplify twice does more")
        for inputs, recorded in case.data_sets:
            given = {info.name: array for info, array in zip(case.model.graph.input, inputs, strict=False) if array is not None}
            found = runs(case.model, after, given)
            if found is None:
                if done.steps:
                    wrong.append(f"{case.name}: nobody runs it, but it was changed: {done.steps}")
                continue
            if not same(*found):
                other_bits.add(case.name)
            if not all(close(r, f, case.rtol, case.atol) for r, f in zip(recorded, found[1], strict=True)):
                off_record.add(case.name)
    names = {case.name for case in chosen}
    assert not wrong
    assert other_bits == OTHER_BITS.keys() & names
    assert off_record == NOT_AS_RECORDED.keys() & names


def test_all_node_models_were_seen() -> None:
    assert len(cases()) >= 1884 and {case.name for case in cases()} >= OTHER_BITS.keys() | NOT_AS_RECORDED.keys()


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"shared_{name}", SHARED / f"{name}.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def real() -> Iterator[str]:
    if (SHARED / "MANIFEST.json").exists():
        yield from (entry["name"] for entry in json.loads((SHARED / "MANIFEST.json").read_text()))


def unchanged_in_bits(model: onnx.ModelProto, sizes: dict[str, list[int]]) -> None:
    """Simplifies and compares; `sizes`: the shapes of inputs."""
    rng = np.random.default_rng(0)
    after = complete(simplify(from_proto(onnx.ModelProto.FromString(model.SerializeToString()))).graph)
    weights = {t.name for t in model.graph.initializer}
    given = {}
    for info in model.graph.input:
        if info.name not in weights:
            kind = info.type.tensor_type
            shape = sizes.get(info.name) or [
                d.dim_value if d.dim_value > 0 else {"seq": 16, "sequence": 16}.get(d.dim_param, 1) for d in kind.shape.dim
            ]
            given[info.name] = random_array(rng, kind.elem_type, shape)
    assert same(outputs(model, given), outputs(after, given))


SLOW = ("gpt2_6l", "bert_base_6l")
SIZES = {"silero_vad_16k": {"input": [1, 576], "sr": []}, "ppocr_cls": {"x": [1, 3, 48, 192]}}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real models of ../shared are not here")
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in real()])
def test_real_models_give_the_same_bits(name: str) -> None:
    path = SHARED / f"{name}.stripped.onnx"
    model = module("restore").restore(str(path)) if path.exists() else onnx.load(SHARED / f"{name}.onnx")
    unchanged_in_bits(model, SIZES.get(name, {}))


@pytest.mark.parametrize("path", LIGHT, ids=lambda p: p.stem)
def test_light_models_give_the_same_bits(path: Path) -> None:
    unchanged_in_bits(onnx.load(path), {})
