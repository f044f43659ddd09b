"""Calibration: what measured prices foretell, held against what is measured: whole models, substitutions, variants of one graph."""

from cgorl.calibration.reporting import calibrate
from cgorl.calibration.filling import fill

__all__ = ["calibrate", "fill"]
