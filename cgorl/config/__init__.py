"""Names -> objects: the configuration in conf/, composed by Hydra; the only importer of hydra in the package."""

from cgorl.config.compose import Memo, build, kept, load_config, plain, yaml
from cgorl.config.files import CONF, ConfigError, defaults, groups, has, hint, usage
from cgorl.config.kinds import check
from cgorl.config.rules import narrowed, rule_set
from cgorl.config.sweeps import experiment, launch, several

__all__ = [
    "CONF",
    "ConfigError",
    "Memo",
    "build",
    "check",
    "defaults",
    "experiment",
    "groups",
    "has",
    "hint",
    "kept",
    "launch",
    "load_config",
    "narrowed",
    "plain",
    "rule_set",
    "several",
    "usage",
    "yaml",
]
