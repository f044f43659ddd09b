"""The zoo's names and what they build; an architecture's module is imported when it is first asked for."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from cgorl.zoo.parameters import ZooError, whole

if TYPE_CHECKING:
    import onnx

# name -> module; the module's function of the same name takes a Generator and keyword parameters.
_MODULES = {
    "bert": "cgorl.zoo.bert",
    "inception_e_n": "cgorl.zoo.inception_e_n",
    "inception_v3": "cgorl.zoo.inception_v3",
    "mobilenet_v2": "cgorl.zoo.mobilenet_v2",
    "nasnet_a": "cgorl.zoo.nasnet_a",
    "nasrnn": "cgorl.zoo.nasrnn",
    "repvgg_a0": "cgorl.zoo.repvgg_a0",
    "resnet18": "cgorl.zoo.resnet18",
    "resnet50": "cgorl.zoo.resnet50",
    "resnet_n": "cgorl.zoo.resnet_n",
    "resnext50": "cgorl.zoo.resnext50",
    "squeezenet1_1": "cgorl.zoo.squeezenet1_1",
    "transformer_transducer": "cgorl.zoo.transformer_transducer",
    "vgg19": "cgorl.zoo.vgg19",
    "vit": "cgorl.zoo.vit",
    "yolo_csp": "cgorl.zoo.yolo_csp",
}


def names() -> tuple[str, ...]:
    """Returns the names that `build` knows, sorted."""
    return tuple(sorted(_MODULES))


def defaults(name: str) -> dict[str, Any]:
    """Returns the parameters of a named graph with their default values, `seed` last.

    Raises:
        ZooError: the name is unknown.
    """
    parameters = inspect.signature(_architecture(name)).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY} | {"seed": 0}


def describe(name: str) -> str:
    """Returns one paragraph on a named graph: its call with defaults, then the first line of its documentation.

    Raises:
        ZooError: the name is unknown.
    """
    call = ", ".join(f"{key}={value!r}" for key, value in defaults(name).items())
    summary = (inspect.getdoc(_architecture(name)) or "").splitlines()[0].removeprefix("Returns ")
    return f"{name}({call}): {summary}"


def build(name: str, *, seed: int = 0, **params: Any) -> onnx.ModelProto:
    """Returns a named graph with weights drawn from the seed; the same bytes for the same arguments in any process.

    Args:
        name: one of `names()`.
        seed: of the weights, at least 0; it gives the same weights at every batch and image size that their shapes do not depend on.
        params: see `describe(name)`.

    Raises:
        ZooError: the name or a parameter is unknown, or a value is out of range.
    """
    architecture = _architecture(name)
    known = defaults(name)
    for key in params:
        if key not in known:
            raise ZooError(f"{name} has no parameter '{key}'{_nearest(key, known)}; it has {', '.join(known)}.")
    import numpy as np

    try:
        return architecture(np.random.default_rng(whole("seed", seed, 0)), **params)
    except ZooError as error:
        raise ZooError(f"{name}: {error}") from None


def _architecture(name: str) -> Callable[..., onnx.ModelProto]:
    if name not in _MODULES:
        raise ZooError(f"the zoo has no graph '{name}'{_nearest(name, _MODULES)}; it has {', '.join(names())}.")
    function: Callable[..., onnx.ModelProto] = getattr(importlib.import_module(_MODULES[name]), name)
    return function


def _nearest(wrong: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(wrong.lower(), known, n=1, cutoff=0.4)
    return f" (did you mean '{near[0]}'?)" if near else ""
