"""Calibration: what measured prices foretell, held against what is measured: whole models, substitutions, variants of one graph."""

from cgorl.calibration.filling import fill
from cgorl.calibration.reporting import calibrate

__all__ = ["calibrate", "fill"]
