"""Names -> objects: the configuration in conf/, composed by Hydra; the only importer of hydra in the package."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, QuotedString
from hydra.errors import HydraException, InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

if TYPE_CHECKING:
    from cgorl.rules.rule import Rule
    from cgorl.rules.rule_set import RuleSet

CONF = Path(__file__).resolve().parent.parent / "conf"

_PATHS = ("model", "output", "runs", "resume", "initial")
_OPEN = ("dims", "zoo")
_EXPERIMENT = "experiment"
_NEEDED = {"optimize": ("model",), "evaluate": ("model",)}


class ConfigError(ValueError):
    """A configuration that cannot be composed; the message names the key and what would do."""


Memo = dict[tuple[str, ...], Any]
"""What calls of `load_config` one after another may share, so that only different choices are composed anew."""


def load_config(name: str, overrides: Sequence[str] = (), values: Mapping[str, Any] | None = None, memo: Memo | None = None) -> DictConfig:
    """The configuration `conf/<name>.yaml` with overrides such as `search=greedy` or `dims.batch=8`.

    Paths (`model`, `output`, `runs`) are taken literally, whatever characters they hold; `dims.` and `zoo.` take any name.
    `values` are overrides as Python objects. Raises ConfigError.
    """
    if not CONF.is_dir():
        raise ConfigError(f"there is no folder '{CONF}': cgorl runs from a clone of its repository, installed with 'pip install -e .'")
    found: dict[str, Any] = {}
    plain = [f"{k}={v}" for k, v in (values or {}).items() if k in groups()]
    for text in overrides:
        key, equals, value = text.partition("=")
        group, _, inner = key.partition(".")
        if not equals:
            raise ConfigError(f"'{text}' should read key=value; {hint(name, text)}")
        if not re.match(r"\w", key) or group == "hydra":
            raise ConfigError(f"there is no key '{key}'; {hint(name, key)}")
        if group in _OPEN and inner:
            found.setdefault(group, {})[inner] = _value(text, value)
        elif key in _PATHS:
            found[key] = _literal(value)
        else:
            plain.append(text)
    for key, given in (values or {}).items():
        if key not in groups():
            found[key] = _literal(str(given)) if key in _PATHS and given is not None else given
    try:
        memo = {} if memo is None else memo
        if (name, *plain) not in memo:
            GlobalHydra.instance().clear()
            with initialize_config_dir(str(CONF), version_base="1.3"):
                memo[name, *plain] = compose(name, overrides=plain)
            OmegaConf.resolve(memo[name, *plain])
        cfg: DictConfig = deepcopy(memo[name, *plain])
        for key, given in found.items():
            OmegaConf.update(cfg, key, given, merge=False, force_add=key in _OPEN)  # a mapping takes the place of the one there
    except (HydraException, OmegaConfBaseException, ValueError) as e:  # hydra raises a bare ValueError for a group that is null
        raise ConfigError(_sentence(name, e)) from None
    for key in map(str, cfg):
        if OmegaConf.is_missing(cfg, key) or (key in _NEEDED.get(name, ()) and not cfg[key]):
            raise ConfigError(f"'{key}' must be given, as {key}=...")
    return cfg


def several(key: str, value: str) -> Iterator[str]:
    """The values that the `value` of `key` stands for: one, or those that Hydra takes for a sweep.

    That is `a,b`, `range(1,4)`, `choice(a,b)`, and of a group `glob(*)`. Brackets and quotes hold one value together, and so
    does a file of just that name. Raises ConfigError.
    """
    if not re.search(r"[,(]", value) or (key in _PATHS and Path(value).exists()):
        yield value
        return
    try:
        [parsed] = OverridesParser.create().parse_overrides([f"v={value}"])
    except HydraException:
        if key in _PATHS:
            raise ConfigError(f"the paths in '{key}={value}' cannot be told apart: put each into quotes") from None
        yield value  # what cannot be read is said where it is used
        return
    if not parsed.is_sweep_override():
        yield str(parsed.value()) if key in _PATHS else value
    elif isinstance(glob := parsed.value(), Glob):
        yield from glob.filter(groups().get(key, []))
    elif key in _PATHS:
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
        hydra = Hydra.create_main_hydra2("sweep", create_config_search_path(str(CONF)))
        cfg = hydra.compose_config("sweep", [*launcher, *quiet], run_mode=RunMode.MULTIRUN, with_log_configuration=False)
        context = HydraContext(hydra.config_loader, Callbacks())
        made = Plugins.instance().instantiate_launcher(hydra_context=context, task_function=work, config=cfg)
    except (HydraException, OmegaConfBaseException) as e:
        name = launcher[0].partition("=")[2]
        if "Could not find 'hydra/launcher" in str(e):
            extra = {"joblib": "sweep", "ray": "ray"}.get(name, "slurm" if name.startswith("submitit") else "sweep")
            raise ConfigError(f"hydra/launcher={name} is not installed: pip install -c constraints.txt -e '.[agent,{extra}]'") from None
        raise ConfigError(" ".join(str(e).split())) from None
    returned = made.launch([[f"+job={k}"] for k in range(1, count + 1)], initial_job_idx=0)
    return [r.return_value if r.status is JobStatus.COMPLETED else r._return_value for r in returned]


def defaults(name: str) -> dict[str, str]:
    """The choice of each group that `conf/<name>.yaml` makes by itself."""
    listed = plain(OmegaConf.load(CONF / f"{name}.yaml"))["defaults"]
    own = {k: v for entry in listed if isinstance(entry, dict) for k, v in entry.items()}
    return {**(defaults(base) if (base := _base(name)) != name else {}), **own}


def _base(name: str) -> str:
    """The configuration that `conf/<name>.yaml` is another of: sweep of train."""
    listed = plain(OmegaConf.load(CONF / f"{name}.yaml"))["defaults"]
    return next((entry for entry in listed if isinstance(entry, str) and entry != "_self_"), name)


def experiment(choice: str, overrides: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The keys of `conf/experiment/<choice>.yaml`, those overrides that name one of them applied, and the other overrides.

    Raises ConfigError.
    """
    there = sorted(f.stem for f in (CONF / _EXPERIMENT).glob("*.yaml"))
    if choice not in there:
        raise ConfigError(f"there is no experiment={choice}; there is {', '.join(there)}")
    own = OmegaConf.load(CONF / _EXPERIMENT / f"{choice}.yaml")
    left = []
    for text in overrides:
        key, _, value = text.partition("=")
        if key.partition(".")[0] not in own:
            left.append(text)
            continue
        above, _, inner = key.rpartition(".")
        known = OmegaConf.select(own, above) if above else own
        if not isinstance(known, DictConfig) or inner not in known:
            near = difflib.get_close_matches(inner, map(str, known), 1) if isinstance(known, DictConfig) else []
            raise ConfigError(f"there is no key '{key}'" + (f"; did you mean '{above}.{near[0]}'?" if near else ""))
        OmegaConf.update(own, key, _literal(value) if key in _PATHS else _value(text, value))
    return plain(own), left


def check(options: Mapping[str, Any]) -> None:
    """Raises ConfigError where an option has a value of the wrong kind; options that it does not know are not looked at."""
    for key in _OPEN:
        if not isinstance(options.get(key, {}), Mapping):
            raise ConfigError(f"{key} must be names with values, as {key}.NAME=8, not {options[key]!r}")
    given = {**options, **{f"dims.{k}": v for k, v in options.get("dims", {}).items()}}
    for key, value in given.items():
        kind, good = _KINDS.get("dims." if key.startswith("dims.") else key, ("", None))
        if good is not None and not good(value):
            raise ConfigError(f"{key} must be {kind}, not {value!r}")


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= least


def _or_null(good: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda v: v is None or good(v)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


_KINDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "simplify": ("true or false", lambda v: isinstance(v, bool)),
    "prove": ("true or false", lambda v: isinstance(v, bool)),
    "gate": ("true, false or auto", lambda v: isinstance(v, bool) or v == "auto"),
    "gate_seconds": ("a number of at least 0", _number),
    "ledger_seconds": ("a number of at least 0", _number),
    "seed": ("a whole number of at least 0", _whole(0)),
    "checkpoint": ("the name of a file, or null", _or_null(lambda v: isinstance(v, str))),
    "versus": ("the name of a search, or null", _or_null(lambda v: isinstance(v, str))),
    "exit_codes": ("plain or detailed", lambda v: v in ("plain", "detailed")),
    "seconds": ("a number of at least 0, or null", _or_null(_number)),
    "expansions": ("a whole number of at least 0, or null", _or_null(_whole(0))),
    "evaluations": ("a whole number of at least 0, or null", _or_null(_whole(0))),
    "shown": ("a whole number of at least 1", _whole(1)),
    "instances": ("a whole number of at least 1", _whole(1)),
    "models": ("a list of files or names, as models=[a.onnx,b.onnx]", lambda v: isinstance(v, list)),
    "dims.": ("a whole number of at least 1", _whole(1)),
    "unbound": ("a whole number of at least 1, or null", _or_null(_whole(1))),
}


def hint(name: str, wrong: str) -> str:
    """What may be said instead of a key that is not there."""
    name = _base(name)
    keys = sorted({*_keys(CONF / f"{name}.yaml"), *defaults(name)} - {"defaults"})
    group, _, inner = wrong.split("=")[0].lstrip("+~-").partition(".")
    if inner and group in groups():
        keys = sorted({f"{group}.{k}" for f in (CONF / group).glob("*.yaml") for k in _keys(f)})
    near = difflib.get_close_matches(f"{group}.{inner}" if inner else group, keys, 1)
    return (f"did you mean '{near[0]}'? " if near else "") + f"keys are {', '.join(keys)}"


def _keys(file: Path) -> list[str]:
    return [line.split(":")[0] for line in file.read_text().splitlines() if re.match(r"[a-z]\w*:", line)]


def usage(name: str) -> str:
    """The keys of `conf/<name>.yaml` with their defaults and notes, and the choices of each group."""
    name = _base(name)
    text = (CONF / f"{name}.yaml").read_text().split("\n\n", 1)[1]
    chosen = "\n".join(f"  {group}={'|'.join(groups()[group])}" for group in sorted(defaults(name)))
    keys = "\n".join(f"  {line}" if line else "" for line in text.splitlines())
    return f"choices\n{chosen}\n\nkeys\n{keys}"


def groups() -> dict[str, list[str]]:
    """The choices of each configuration group."""
    folders = (p for p in sorted(CONF.iterdir()) if p.is_dir() and p.name != _EXPERIMENT)
    return {p.name: sorted(f.stem for f in p.glob("*.yaml")) for p in folders}


def has(group: str, choice: str, key: str) -> bool:
    """Whether a choice of a group has a key; true of a choice that there is not, which is said elsewhere."""
    file = CONF / group / f"{choice}.yaml"
    return not file.is_file() or key.partition(".")[0] in _keys(file)


def build(node: Any, **more: Any) -> Any:
    """The object that a configuration node with `_target_` describes. Raises ConfigError where its class will not have the values."""
    try:
        return instantiate(node, **more, _convert_="all")
    except InstantiationException as e:
        raise ConfigError(" ".join(str(e.__cause__ or e).split())) from None


def rule_set(node: Mapping[str, Any]) -> RuleSet:
    """The rules whose name or a tag is in `include` ("*": all) and not in `exclude`. Raises ConfigError.

    Of the library; of TASO's where there is a key `file` (a rule file of TASO, or null).
    """
    from cgorl.rules.pattern import RuleError  # not before they are asked for: `--help` does without
    from cgorl.rules.rule_set import RuleSet
    from cgorl.rules.taso import IMPORT_TAGS, taso_rules
    from cgorl.rules.text import library

    try:
        rules = taso_rules(node["file"]) if "file" in node else library()
    except RuleError as e:
        raise ConfigError(str(e)) from None
    for key in ("include", "exclude"):
        if not isinstance(node[key], list):
            raise ConfigError(f"rules.{key} must be a list, as rules.{key}=[layout], not {node[key]!r}")
    if not _number(node["growth"]):
        raise ConfigError(f"rules.growth must be a number of at least 0, not {node['growth']!r}")
    known = {r.name for r in rules} | {t for r in rules for t in r.tags} | {"*"} | (IMPORT_TAGS if "file" in node else frozenset())
    _known([*node["include"], *node["exclude"]], known)
    chosen = tuple(r for r in rules if _named(r, node["include"]) and not _named(r, node["exclude"]))
    return RuleSet(chosen, float(node["growth"]))


def narrowed(rules: RuleSet, words: Sequence[str]) -> RuleSet:
    """Those of the rules whose name or a tag is among `words`; all if there are none. Raises ConfigError for an unknown word."""
    from dataclasses import replace

    _known(words, {r.name for r in rules} | {t for r in rules for t in r.tags})
    return replace(rules, rules=tuple(r for r in rules if _named(r, words))) if words else rules


def _known(words: Sequence[str], known: Set[str]) -> None:
    for word in words:
        if word not in known:
            near = difflib.get_close_matches(word, known, 1)
            raise ConfigError(f"there is no rule or tag '{word}'" + (f"; did you mean '{near[0]}'?" if near else ""))


def _named(rule: Rule, words: Sequence[str]) -> bool:
    return any(w == "*" or w == rule.name or w in rule.tags for w in words)


def plain(cfg: Any) -> Any:
    """The configuration as plain dicts and lists."""
    return OmegaConf.to_container(cfg, resolve=True)


def kept(file: Path) -> DictConfig:
    """The configuration that a run kept in its folder. Raises ConfigError where there is none."""
    try:
        found = OmegaConf.load(file)
    except Exception:  # yaml's errors share no base class with those of a missing file
        found = None
    if not isinstance(found, DictConfig):
        raise ConfigError(f"there is no configuration of a run in '{file}'")
    return found


def yaml(cfg: Any) -> str:
    """The configuration as YAML text."""
    return OmegaConf.to_yaml(cfg, resolve=True)


def _literal(value: str) -> str | None:
    """A path as a configuration value that resolves to just that path."""
    return None if value in ("", "null") else value.replace("${", "\\${")


def _value(text: str, value: str) -> Any:
    try:
        return OmegaConf.to_container(OmegaConf.create(f"v: {value}"))["v"]  # type: ignore[index, call-overload]
    except Exception:  # yaml's errors
        raise ConfigError(f"the value of '{text}' cannot be read") from None


def _sentence(name: str, error: Exception) -> str:
    text = " ".join(str(error).split())
    if many := re.search(r"Ambiguous value for argument '([^=']+)=", text):
        return f"'{many[1]}' takes one value here: scripts/evaluate.py and scripts/sweep.py run several"
    if key := re.search(r"Key '([^']+)' is not in struct|Could not override '([^']+)'", text):
        wrong = key[1] or key[2]
        return f"there is no key '{wrong}'; {hint(name, wrong)}"
    if choice := re.search(r"Could not find '(\w+)/([^']*)'", text):
        group, wrong = choice[1], choice[2]
        there = groups().get(group, [])
        near = difflib.get_close_matches(wrong, there, 1)
        return f"there is no {group}={wrong}" + (f" (did you mean '{near[0]}'?)" if near else "") + f"; there are {', '.join(there)}"
    return text
