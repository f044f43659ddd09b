"""Sweeps: several values of a key, experiments with keys of their own, and Hydra's launchers."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, QuotedString
from hydra.errors import HydraException
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from cgorl.config import files
from cgorl.config.compose import PATHS, literal, plain, value_of
from cgorl.config.files import ConfigError, groups


def several(key: str, value: str) -> Iterator[str]:
    """The values that the `value` of `key` stands for: one, or those that Hydra takes for a sweep.

    That is `a,b`, `range(1,4)`, `choice(a,b)`, and of a group `glob(*)`. Brackets and quotes hold one value together, and so
    does a file of just that name. Raises ConfigError.
    """
    if not re.search(r"[,(]", value) or (key in PATHS and Path(value).exists()):
        yield value
        return
    try:
        [parsed] = OverridesParser.create().parse_overrides([f"v={value}"])
    except HydraException:
        if key in PATHS:
            raise ConfigError(f"the paths in '{key}={value}' cannot be told apart: put each into quotes") from None
        yield value  # what cannot be read is said where it is used
        return
    if not parsed.is_sweep_override():
        yield str(parsed.value()) if key in PATHS else value
    elif isinstance(glob := parsed.value(), Glob):
        yield from glob.filter(groups().get(key, []))
    elif key in PATHS:
        yield from map(str, parsed.sweep_iterator(lambda v: v.text if isinstance(v, QuotedString) else v))
    else:
        yield from parsed.sweep_string_iterator()


def launch(launcher: Sequence[str], work: Callable[[Any], Any], count: int, folder: Path) -> list[Any]:
    """What `work` returns for a configuration with `job=1` to `job=count`, run by a launcher of Hydra's; an exception where it raised.

    `launcher` are the overrides that choose and set it, as `hydra/launcher=joblib hydra.launcher.n_jobs=2`; Hydra's own notes
    go to `folder`. Raises ConfigError where there is no such launcher.
    """
    from hydra._internal.callbacks import Callbacks
    from hydra._internal.hydra import Hydra
    from hydra._internal.utils import create_config_search_path
    from hydra.core.plugins import Plugins
    from hydra.core.utils import JobStatus
    from hydra.types import HydraContext, RunMode

    GlobalHydra.instance().clear()
    quiet = [f"hydra.sweep.dir='{folder}'", "hydra.output_subdir=null", "hydra/job_logging=none", "hydra/hydra_logging=none"]
    try:
        hydra = Hydra.create_main_hydra2("sweep", create_config_search_path(str(files.CONF)))
        cfg = hydra.compose_config("sweep", [*launcher, *quiet], run_mode=RunMode.MULTIRUN, with_log_configuration=False)
        context = HydraContext(hydra.config_loader, Callbacks())
        made = Plugins.instance().instantiate_launcher(hydra_context=context, task_function=work, config=cfg)
    except (HydraException, OmegaConfBaseException) as e:
        name = launcher[0].partition("=")[2]
        if "Could not find 'hydra/launcher" in str(e):
            extra = {"joblib": "sweep", "ray": "ray"}.get(name, "slurm" if name.startswith("submitit") else "sweep")
            how = f"pip install {'' if extra == 'ray' else '-c constraints.txt '}-e '.[agent,{extra}]'"
            why = ", in an environment of its own: it needs cloudpickle<3, joblib a newer one" if extra == "ray" else ""
            raise ConfigError(f"hydra/launcher={name} is not installed: {how}{why}") from None
        raise ConfigError(" ".join(str(e).split())) from None
    try:
        returned = made.launch([[f"+job={k}"] for k in range(1, count + 1)], initial_job_idx=0)
    except KeyboardInterrupt:
        if cfg.hydra.launcher._target_.endswith(".SlurmLauncher"):
            _cancel(Path(cfg.hydra.launcher.submitit_folder))
        raise
    return [r.return_value if r.status is JobStatus.COMPLETED else r._return_value for r in returned]


def _cancel(folder: Path) -> None:
    """Takes jobs that would outlive their sender out of SLURM's queue, waiting or running. `folder` ends with `%j`, their numbers."""
    from submitit import SlurmJob

    for job in folder.parent.glob("[0-9]*"):
        SlurmJob(folder, job.name).cancel(check=False)


def experiment(choice: str, overrides: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The keys of `conf/experiment/<choice>.yaml`, those overrides that name one of them applied, and the other overrides.

    Raises ConfigError.
    """
    there = sorted(f.stem for f in (files.CONF / files.EXPERIMENT).glob("*.yaml"))
    if choice not in there:
        raise ConfigError(f"there is no experiment={choice}; there is {', '.join(there)}")
    own = OmegaConf.load(files.CONF / files.EXPERIMENT / f"{choice}.yaml")
    left = []
    for text in overrides:
        key, _, value = text.partition("=")
        if key.partition(".")[0] not in own:
            left.append(text)
            continue
        above, _, inner = key.rpartition(".")
        known: Any = OmegaConf.select(own, above) if above else own
        if not isinstance(known, DictConfig) or inner not in known:
            near = difflib.get_close_matches(inner, map(str, known), 1) if isinstance(known, DictConfig) else []
            raise ConfigError(f"there is no key '{key}'" + (f"; did you mean '{above}.{near[0]}'?" if near else ""))
        given = literal(value) if key in PATHS else value_of(text, value)
        for kind, called in ((DictConfig, "names with values"), (ListConfig, "a list, as [a,b]"), (str, "text"), (bool, "true or false")):
            if isinstance(known[inner], kind) and not isinstance(OmegaConf.create([given])[0], kind):
                raise ConfigError(f"{key} must be {called}, not {given!r}")
        OmegaConf.update(own, key, given)
    keys: dict[str, Any] = plain(own)
    if Path(keys["output"]).exists() and not Path(keys["output"]).is_dir():
        raise ConfigError(f"output must be a folder, and '{keys['output']}' is a file")
    return keys, left
