"""Layers beside one another over one input, whose results are concatenated or go their ways."""

from __future__ import annotations

from cgorl.zoo.blocks.sketch import Sketch
from cgorl.zoo.builder import Value

_MAP = (2, 8, 8, 8)


def csp_halves(s: Sketch) -> Value:
    """Two 1x1 convolutions of one input, one goes on: CSPDarknet, YOLOv5's C3."""
    x = s.input(*_MAP)
    first, second = s.conv(x, 4), s.conv(x, 4)
    return s.conv(s.concat(s.apply("Relu", s.conv(s.apply("Relu", first), 4, 3)), second), 8)


def fire(s: Sketch) -> Value:
    """1x1 and 3x3 convolutions of one input, relu, concatenated: the fire module of SqueezeNet."""
    x = s.apply("Relu", s.conv(s.input(*_MAP), 4))
    return s.concat(s.apply("Relu", s.conv(x, 6)), s.apply("Relu", s.conv(x, 6, 3)))


def head_outputs(s: Sketch) -> Value:
    """Class, objectness and box convolutions of one input, concatenated: heads of NanoDet."""
    x = s.input(*_MAP)
    return s.apply("Sigmoid", s.concat(s.conv(x, 4), s.conv(x, 1), s.conv(x, 5)))


def inception_reduce(s: Sketch) -> Value:
    """1x1 convolutions of one input that begin branches: Inception modules of GoogLeNet."""
    x = s.input(*_MAP)
    narrow, wide = s.apply("Relu", s.conv(x, 4)), s.apply("Relu", s.conv(x, 4))
    return s.concat(s.apply("Relu", s.conv(x, 6)), s.conv(narrow, 6, 3), s.conv(wide, 6, 5))
