"""TASO's initial costs (analytic prices, before any clean-up) come out of the zoo's forms of its graphs; every device loads and prices."""

from typing import Any

import onnx
import pytest

from cgorl import config, zoo
from cgorl.cost.roofline import Roofline
from cgorl.ir.from_proto import from_proto


def prices(device: str) -> Roofline:
    cost = config.build(config.load_config("optimize", ["model=none", f"device={device}"]).cost, dims={}, unbound=None)
    assert isinstance(cost, Roofline) and cost.device.name == device and cost.device.source
    return cost


@pytest.mark.parametrize(
    ("name", "params", "published_ms"),
    [
        ("inception_v3", {"form": "taso"}, 138.237),
        ("nasnet_a", {"form": "taso"}, 421.731),
        ("resnet50", {"form": "taso"}, 108.707),
        ("resnext50", {"form": "taso"}, 117.160),
        ("squeezenet1_1", {"form": "taso"}, 15.783),
        ("bert", {"form": "taso"}, 60.948),  # TASO's dead attention costs the same
    ],
)
def test_initial_costs_are_tasos(name: str, params: dict[str, Any], published_ms: float) -> None:
    assert prices("taso").cost_ms(from_proto(zoo.build(name, **params))) == pytest.approx(published_ms, rel=1e-4)


def test_nasrnn_costs_what_taso_says_where_weights_are_not_free() -> None:
    """TASO's CPU prices count the first cell's 8 products of the initial state, a weight; here they are free.

    With the state as an input everything runs.
    """
    model = zoo.build("nasrnn")
    assert prices("taso").cost_ms(from_proto(onnx.ModelProto.FromString(model.SerializeToString()))) == pytest.approx(9.1443, rel=1e-4)
    (state,) = (tensor for tensor in model.graph.initializer if tensor.name == "state")
    model.graph.initializer.remove(state)
    model.graph.input.append(onnx.helper.make_tensor_value_info("state", state.data_type, state.dims))
    assert prices("taso").cost_ms(from_proto(model)) == pytest.approx(10.068, rel=1e-4)


DEVICES = sorted(path.stem for path in (config.CONF / "device").glob("*.yaml"))


@pytest.mark.parametrize("device", DEVICES)
def test_every_device_prices_a_network(device: str) -> None:
    graph, cost = from_proto(zoo.build("resnet18")), prices(device)
    # ResNet-18 is 3.6e9 operations and at least 45 MB of weights: no device is faster than both allow.
    least_ms = 1000 * max(3.6e9 / cost.device.peak_flops, 45e6 / cost.device.bandwidth)
    assert least_ms < cost.cost_ms(graph) < 30 * least_ms
    assert cost.unknown(graph) == []


def test_faster_devices_are_faster() -> None:
    graph = from_proto(zoo.build("resnet18", batch=16))  # at 1 the newer device is the emptier one
    assert {"a100", "cpu", "taso", "v100"} <= set(DEVICES)
    assert prices("a100").cost_ms(graph) < prices("v100").cost_ms(graph) < prices("cpu").cost_ms(graph) < prices("taso").cost_ms(graph)
