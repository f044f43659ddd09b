"""The calibration report: tables on the screen, rows and a picture in a folder of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Console

from cgorl import config
from cgorl.calibration import models, signs, variants
from cgorl.calibration.filling import chosen, configured, measured
from cgorl.ir.run import RunError
from cgorl.report import agreement, figures
from cgorl.tracking import Tracker

PARTS = ("models", "pairs", "variants")
_MODEL_SECONDS, _PAIR_SECONDS, _VARIANT_SECONDS = 6.0, 0.6, 40.0


def calibrate(arguments: Sequence[str], console: Console) -> None:
    """Runs the parts that `arguments` name, or all: each model, the substitutions, variants of the first model.

    What was found goes into a run folder, with a picture of it. Raises ConfigError at once, and RunError at the end for models
    that do not run.
    """
    words, keys = [a for a in arguments if "=" not in a], [a for a in arguments if "=" in a]
    if wrong := [w for w in words if w not in PARTS]:
        raise config.ConfigError(f"there is no part '{wrong[0]}' of a calibration; there are {', '.join(PARTS)}")
    parts = words or PARTS
    rows: list[models.Row] = []
    signed: list[signs.Sign] = []
    varied: list[variants.Variant] = []
    amiss: list[str] = []
    cfg = configured([k for k in keys if not k.startswith("model=")], "none")
    prices, runs, name = measured(cfg), config.plain(cfg)["runs"], ""
    tracker: Tracker | None = None  # made before anything is measured: what cannot be kept need not be
    if "models" in parts or "variants" in parts:
        for model in chosen(keys):
            name, first = name or model.name, not name
            tracker = tracker or Tracker(runs, "calibrate", name)
            try:
                if "models" in parts:
                    rows.append(models.run(model, _MODEL_SECONDS))
                    models.tell(rows[-1], console)
                if "variants" in parts and first:
                    varied = variants.variants(model, _VARIANT_SECONDS)
            except RunError as e:
                amiss.append(f"{model.name} does not run: {e}")
    tracker = tracker or Tracker(runs, "calibrate", "pairs")
    if "pairs" in parts:
        for sign in signs.signs(prices, _PAIR_SECONDS):
            signed.append(sign)
            console.print(f"{sign.name}: {sign.foretold:.2f} foretold, {sign.measured.middle:.2f} measured", highlight=False)
    if rows:
        models.show(rows, console)
    if signed:
        signs.show(signed, console)
    if len(varied) > 1:
        variants.show(name, varied, console)
    elif varied:
        console.print(f"{name}: no rule matches, so that there are no variants to put into order", highlight=False, markup=False)
    if amiss and not (rows or signed or varied):
        raise RunError("; ".join(amiss))
    console.print(str(prices.store.target), highlight=False)
    found = {
        "target": str(prices.store.target),
        "models": [{"name": r.name, "predicted_ms": r.predicted_ms, "measured_ms": r.measured_ms, "cold_ms": r.cold_ms} for r in rows],
        "pairs": [{"name": s.name, "predicted": s.foretold, "measured": list(s.measured), "counts": s.counts} for s in signed],
        "variants": [v._asdict() for v in varied],
    }
    tracker.write("calibration.json", json.dumps(found, indent=1) + "\n")
    figure = agreement.agreement(
        [(r.name, r.predicted_ms, r.measured_ms) for r in rows],
        [(s.foretold, s.measured.middle) for s in signed],
        [(v.predicted_ms, v.measured_ms) for v in varied],
        name,
        str(prices.store.target),
    )
    console.print(f"drawn     {figures.save(figure, tracker.folder / 'calibration.png')}", highlight=False, soft_wrap=True)
    if amiss:
        raise RunError("; ".join(amiss))
