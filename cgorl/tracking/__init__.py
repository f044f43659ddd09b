"""Tracking: one folder a run, W&B beside it, and both read back; the only importer of wandb."""

from cgorl.tracking.tracker import METRICS, Tracker, TrackError, flat, whole
from cgorl.tracking.wandb_run import Wandb, WandbRun

__all__ = ["METRICS", "TrackError", "Tracker", "Wandb", "WandbRun", "flat", "whole"]
