"""TASO's rules: read, spelled, proven; matched where TASO matches; refuted without their guards."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from cgorl import zoo
from cgorl.config import ConfigError, load_config, plain, rule_set
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.rules.match import explain, matches
from cgorl.rules.matches import MatchSet
from cgorl.rules.pattern import RuleError
from cgorl.rules.proof import RuleProof, verify
from cgorl.rules.rule import Match, Rule
from cgorl.rules.rule_set import RuleSet
from cgorl.rules.taso import hand_rules, import_rules, taso_rules
from cgorl.rules.text import parse_rules

FILE = Path(__file__).resolve().parents[3] / "shared/taso/graph_subst.pb"
needs_file = pytest.mark.skipif(not FILE.exists(), reason="TASO's rule file is not at ../shared/taso/graph_subst.pb")

SELF_CONV = {32, 33, 34, 35, 53, 54, 55, 56, 92, 93, 106, 107, 108, 109}
"""Rules that cannot fire on any real graph: data and weight of a conv are one value."""
UNSOUND = {98, 99, 100, 105, *range(125, 132)}
"""Rules that mix up the channels of grouped convs (99, 100, 130, 131: of dense ones too) unless they are guarded."""

SAME = "strides=[1, 1], dilations=[1, 1]"
AS_IN_TASO = f"""
rule taso-enlarge-merge-none: unguarded
    (c := Conv(x, w, kernel_shape=n1, pads=p1, {SAME}, group=_)), (d := Conv(x, v, kernel_shape=n2, pads=p2, {SAME}, group=_))
 => *Split(Conv(x, t, kernel_shape=n2, pads=p2, {SAME}, group=groups(x, t)), axis=1, split=sizes(0, w, v)),
 where t = Concat(enlarged(w, p2, p1, [1, 1]), v, axis=0)
 if same_padding(n1, p1), same_padding(n2, p2), covers(n2, p2, n1, p1, [1, 1]), constant(w, v), unactivated(c), unactivated(d)

# Zeros are put as if there were two groups, however many there are.
rule taso-merge-groups-s1-none: unguarded
    (c := Conv(x, w, kernel_shape=n, pads=p, {SAME}, group=g))
 => Conv(x, merged_groups(w, 2, 2), kernel_shape=n, pads=p, {SAME}, group=quotient(g, 2))
 if divides(g, 2), constant(w), same_padding(n, p), unactivated(c)

# The factor is dropped.
rule taso-conv-mul-s1-same: unguarded
    Mul((y := Conv(x, w, kernel_shape=n, pads=p, {SAME}, group=g)), f)
 => Conv(x, w, kernel_shape=n, pads=p, {SAME}, group=g)
 if same_padding(n, p), constant(w, f), same_dtype(w, f), channelwise(f, result(y))

# Epsilon is left out.
rule taso-conv-batchnorm-s1-same: unguarded
    BatchNormalization(Conv(x, w, kernel_shape=n, pads=p, {SAME}, group=g), a, b, m, v, epsilon=_, momentum=_)
 => Conv(x, w * outward(k, w), b - m * k, kernel_shape=n, pads=p, {SAME}, group=g)
 where k = a / sqrt(v)
 if same_padding(n, p), constant(w, a, b, m, v), same_dtype(w, a, b, m, v)
"""
"""Hand-written rules as TASO applies them."""


@cache
def imported(guarded: bool = True) -> tuple[Rule, ...]:
    return import_rules(FILE, guarded)


def tried(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """What `rules=taso` takes of them."""
    return tuple(r for r in rules if not {"identity", "disconnected", "unfused"} & set(r.tags))


def as_taso_applies_them() -> tuple[Rule, ...]:
    """Both kinds, with the guards of neither."""
    wrong = parse_rules(AS_IN_TASO)
    names = {r.name for r in wrong}
    return tried([*(r for r in hand_rules() if r.name not in names), *wrong, *imported(guarded=False)])


def proof(rule: Rule, instances: int, least: int = 5) -> RuleProof:
    return verify(rule, np.random.default_rng([0, *rule.name.encode()]), instances, 200, least)


def tagged(tag: str) -> set[int]:
    return {i for i, r in enumerate(imported()) if tag in r.tags}


# ------------------------------------------------------------------ the file


def _varint(n: int) -> bytes:
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def _message(*fields: tuple[int, int | bytes]) -> bytes:
    return b"".join(_varint(k << 3) + _varint(v) if isinstance(v, int) else _varint(k << 3 | 2) + _varint(len(v)) + v for k, v in fields)


def _op(kind: int, inputs: Sequence[tuple[int, int]], **parameters: int) -> bytes:
    keys = {"STRIDE_H": 6, "STRIDE_W": 7, "PAD": 8, "ACTI": 9, "NUMDIM": 10, "AXIS": 11}
    operands = [(2, _message((1, i), (2, port))) for i, port in inputs]
    return _message((1, kind), *operands, *((3, _message((1, keys[k]), (2, v))) for k, v in parameters.items()))


CONV = {"STRIDE_H": 2, "STRIDE_W": 1, "PAD": 1}
RELU_OF_SUM = _message(
    (1, _op(16, [(-1, 0), (-2, 0)])),
    (1, _op(3, [(0, 0), (-3, 0)], ACTI=2, **CONV)),
    (2, _op(3, [(-1, 0), (-3, 0)], ACTI=0, **CONV)),
    (2, _op(3, [(-2, 0), (-3, 0)], ACTI=0, **CONV)),
    (2, _op(16, [(0, 0), (1, 0)])),
    (2, _op(8, [(2, 0)])),
    (3, _message((1, 1), (2, 3), (3, 0), (4, 0))),
)


def test_a_rule_of_the_file_is_spelled_in_the_projects_text(tmp_path: Path) -> None:
    path = tmp_path / "made.pb"
    path.write_bytes(_message((1, RELU_OF_SUM)))
    (rule,) = import_rules(path)
    assert (rule.name, rule.provenance, rule.tags) == ("taso-0", "taso:0", ("taso", "conv"))
    attrs = "kernel_shape=k, pads=p, strides=[2, 1], dilations=[1, 1], group=g"
    expected = f"""
# TASO's rule 0
rule taso-0: taso conv
    (r1 := Relu((o1 := Conv((o0 := x1 + x2), x3, {attrs}))))
 => Relu(Conv(x1, x3, {attrs}) + Conv(x2, x3, {attrs}))
 if operand_is(o0, 0, x1), valid_padding(k, p), kernel_of(k, x3), same_type(x1, x2), floating(result(r1))
"""
    assert parse_rules(expected, provenance="taso:0") == (rule,)
    assert parse_rules(str(rule), provenance="taso:0") == (rule,)
    assert proof(rule, 6).ok


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "it holds no rule"),
        (b"ir_version: 8", "rule file"),
        (bytes(range(256)), "rule file"),
        (_message((1, _message((1, _op(13, [(-1, 0)]))))), "lacks operands or parameters"),
        (_message((1, _message((1, _op(6, [(-1, 0)]))))), "operator 6"),
        (_message((1, _message((1, _op(16, [(-1, 0), (0, 0)]))))), "before its operand"),
        (_message((1, _message((1, _op(8, [(-1, 0)])), (3, _message((1, 0), (2, 5)))))), "does not have"),
        (_message((1, _message((1, _op(8, [(-1, 0)]))))), "no result"),
    ],
)
def test_what_is_no_rule_file_gets_one_sentence(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "wrong.pb"
    path.write_bytes(content)
    with pytest.raises(RuleError) as caught:
        import_rules(path)
    assert told in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_ends_early_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    whole = _message((1, RELU_OF_SUM))
    path = tmp_path / "short.pb"
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(RuleError):
            import_rules(path)


def test_a_file_that_is_not_there_gets_one_sentence(tmp_path: Path) -> None:
    for path in (tmp_path / "none.pb", tmp_path):
        with pytest.raises(RuleError, match="cannot read the rule file"):
            import_rules(path)


# ------------------------------------------------------------------ the rules


def test_the_eighteen_hand_written_rules_are_there() -> None:
    rules = hand_rules()
    assert len(rules) == 18
    assert [r.provenance for r in rules] == [f"taso:hand-{i}" for i in range(18)]
    assert Counter(r.name.rsplit("-", 2)[0] for r in rules[:12]) == {"taso-conv-relu": 4, "taso-conv-batchnorm": 4, "taso-conv-mul": 4}
    assert [r.name for r in rules[12:14]] == ["taso-enlarge-merge-none", "taso-enlarge-merge-relu"]
    assert {r.name for r in rules if "identity" in r.tags} == {f"taso-conv-relu-s{s}-{pad}" for s in (1, 2) for pad in ("same", "valid")}


@needs_file
def test_all_rules_read_back_from_their_text() -> None:
    for rule in (*hand_rules(), *imported(), *imported(guarded=False)):
        assert parse_rules(str(rule), provenance=rule.provenance) == (rule,)


@needs_file
def test_tags_say_what_a_search_should_leave_out() -> None:
    assert len(imported()) == 133
    assert tagged("self-conv") == SELF_CONV
    assert tagged("identity") == {63, 64, 65, 66}
    assert tagged("disconnected") == {63, 65, 70, 81, 95, 120}
    assert tagged("unfused") == {63, 64, 65, 66, 118, 129}
    assert {i for i, r in enumerate(imported()) if len(r.source) == 2} == {9, 63, 65, 70, 77, 79, 81, 95, 116, 118, 120, 127, 129}


@pytest.mark.parametrize("part", range(6))
def test_every_rule_holds_on_random_instances(part: int) -> None:
    rules = taso_rules(FILE if FILE.exists() else None)
    proofs = [proof(rule, 5, 4) for rule in rules[part::6]]
    assert [str(p) for p in proofs if not p.ok] == []


@needs_file
@pytest.mark.parametrize("index", sorted(UNSOUND))
def test_without_its_guards_an_unsound_rule_is_refuted(index: int) -> None:
    assert proof(imported(guarded=False)[index], 60).refuted


@pytest.mark.parametrize("rule", parse_rules(AS_IN_TASO), ids=lambda r: r.name)
def test_a_hand_written_rule_as_taso_applies_it_is_refuted(rule: Rule) -> None:
    assert proof(rule, 60).refuted


# ------------------------------------------------------------------ where they match

GRAPHS = {
    "inception_v3": {"form": "taso", "width": 0.125},
    "resnet50": {"form": "taso", "width": 0.125},
    "resnext50": {"form": "taso", "width": 0.25},
    "nasnet_a": {"width": 0.0625},
    "nasrnn": {"hidden": 16},
}


@cache
def graph(name: str) -> Graph:
    return from_proto(zoo.build(name, **GRAPHS[name]))


def counts(name: str, rules: Iterable[Rule]) -> dict[str, int]:
    return dict(Counter(m.rule.name.removeprefix("taso-") for m in MatchSet(graph(name), RuleSet(tuple(rules)))))


GROUPS = {"merge-groups-s1-none": 78, "merge-groups-s2-none": 12}
SUMS = {"98": 33, "105": 33}


@needs_file
@pytest.mark.parametrize(
    ("name", "total", "found"),
    [
        ("inception_v3", 56, {"enlarge-merge-relu": 56}),
        ("resnet50", 2, {"enlarge-merge-relu": 2}),
        ("resnext50", 18, {"enlarge-merge-relu": 2, "merge-groups-s1-relu": 13, "merge-groups-s2-relu": 3}),
        ("nasnet_a", 198, {"enlarge-merge-relu": 42, **GROUPS, **SUMS}),
    ],
)
def test_starting_matches_are_tasos_sound_ones(name: str, total: int, found: dict[str, int]) -> None:
    assert counts(name, tried(taso_rules(FILE))) == found
    assert sum(found.values()) == total


@needs_file
def test_without_guards_nasnet_has_tasos_438_starting_matches() -> None:
    found = counts("nasnet_a", as_taso_applies_them())
    assert found == {"enlarge-merge-relu": 42, **GROUPS, **SUMS, "enlarge-merge-none": 120, "127": 120}
    assert sum(found.values()) == 438


@needs_file
def test_nasrnn_lacks_only_what_rests_on_weights() -> None:
    """TASO counts 680.

    It lists 7 * 8 pairs among the first cell's 8 products of weights, which cost nothing here, and 20 of rules 95 and 120,
    whose concat has rank 4 where the relus of NasRNN have rank 2.
    """
    found = counts("nasrnn", [r for r in imported() if not {"identity", "unfused"} & set(r.tags)])
    assert found == {"77": 560 - 56, "73": 40, "91": 40, "70": 10, "81": 10}
    assert sum(found.values()) == 680 - 56 - 20


@needs_file
def test_what_is_dead_matches_nowhere_in_the_zoo() -> None:
    dead = [r for i, r in enumerate(imported()) if i in SELF_CONV]
    assert all(counts(name, dead) == {} for name in GRAPHS)


def small(text: str, **shapes: Sequence[int | str]) -> Graph:
    """A graph from lines `y = Op(a, b)`; weights are the names in capitals, results nobody reads the outputs."""
    nodes, read = [], set()
    for line in text.strip().splitlines():
        result, _, call = (part.strip() for part in line.partition("="))
        op, _, names = call.partition("(")
        operands = [n.strip() for n in names.rstrip(")").split(",")]
        read |= set(operands)
        extra = {"Conv": {"kernel_shape": [3, 3], "pads": [1] * 4}, "Concat": {"axis": 1}}.get(op, {})
        nodes.append(helper.make_node(op, operands, [result], **extra))
    made = {n.output[0] for n in nodes}
    names = sorted(read - made)
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shapes.get(n, [1, 4, 5, 5])) for n in names if not n.isupper()]
    weights = [numpy_helper.from_array(np.ones(shapes.get(n, [4, 4, 3, 3]), np.float32), n) for n in names if n.isupper()]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in sorted(made - read)]
    body = helper.make_graph(nodes, "small", infos, outputs, weights)
    return from_proto(helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


def named(g: Graph, label: str) -> int:
    return next(i for i, n in g.nodes.items() if label in n.names)


def rule_named(name: str) -> Rule:
    return next(r for r in (*hand_rules(), *(imported() if FILE.exists() else ())) if r.name == name)


def test_a_conv_and_its_relu_match_as_one_activated_conv_only() -> None:
    plain, activated = rule_named("taso-enlarge-merge-none"), rule_named("taso-enlarge-merge-relu")
    apart = small("a = Conv(x, V)\nb = Conv(x, W)\nc = Conv(x, U)\nra = Relu(a)\nrb = Relu(b)\nrb2 = Relu(b)\nz = Tanh(c)")
    assert len(matches(plain, apart, named(apart, "b"))) == 1  # with c: b has two relus, so that it is no pair with either
    assert matches(plain, apart, named(apart, "a")) == matches(activated, apart, named(apart, "ra")) == []
    assert "one activated conv" in explain(plain, apart, named(apart, "a"))
    pairs = small("a = Conv(x, V)\nb = Conv(x, W)\nra = Relu(a)\nrb = Relu(b)")
    assert len(matches(activated, pairs, named(pairs, "ra"))) == 1


@needs_file
def test_a_relu_that_is_a_convs_activation_matches_no_relu() -> None:
    rule = rule_named("taso-94")  # concat(relu, relu)
    free = small("y = Concat(p, q)\np = Relu(x)\nq = Relu(z)")
    assert len(matches(rule, free, named(free, "y"))) == 1
    taken = small("c = Conv(z, W)\nq = Relu(c)\np = Relu(x)\ny = Concat(p, q)")
    assert matches(rule, taken, named(taken, "y")) == []
    assert "one activated conv" in explain(rule, taken, named(taken, "y"))
    shared = small("c = Conv(z, W)\nt = Tanh(c)\nq = Relu(c)\np = Relu(x)\ny = Concat(p, q)")
    assert len(matches(rule, shared, named(shared, "y"))) == 1


@pytest.mark.parametrize("groups", [2, 4, 6, 8])
def test_groups_are_halved_whatever_their_number(groups: int) -> None:
    node = helper.make_node("Conv", ["x", "W"], ["y"], kernel_shape=[3, 3], pads=[1] * 4, group=groups)
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [node],
        "grouped",
        [value("x", TensorProto.FLOAT, [1, 2 * groups, 5, 5])],
        [value("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ones((3 * groups, 2, 3, 3), np.float32), "W")],
    )
    g = from_proto(helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    (match,) = matches(rule_named("taso-merge-groups-s1-none"), g, named(g, "y"))
    after = g.replace(match.edit)
    (conv,) = (n for n in after.nodes.values() if n.op == "Conv")
    assert conv.attrs.get("group", 1) == groups // 2
    assert conv.inputs[1] is not None
    assert after.type(conv.inputs[1]).shape == (3 * groups, 4, 3, 3)  # type: ignore[union-attr]


# ------------------------------------------------------------------ incremental


def listed(found: Iterable[Match]) -> list[tuple[str, tuple[int, ...]]]:
    return [(m.rule.name, m.nodes) for m in found]


def walk(g: Graph, rules: RuleSet, steps: int, rng: random.Random) -> int:
    """Random rewrites, after each of which the matches must be those of a full scan; returns how many were made."""
    found = MatchSet(g, rules)
    for step in range(steps):
        choices = list(found)
        if not choices:
            return step
        match = rng.choice(choices)
        g = g.replace(match.edit)
        found = found.after(g, match)
        full = listed(MatchSet(g, rules, limit=found.limit))
        assert listed(found) == full, match.rule.name
    return steps


@cache
def default_set() -> RuleSet:
    return RuleSet(tried(taso_rules(FILE if FILE.exists() else None)))


@st.composite
def conv_graphs(draw: st.DrawFn) -> Graph:
    """Convs, relus and elementwise operators on few weights: pairs come and go as users do."""
    values, lines = ["x", "z"], []
    for k in range(draw(st.integers(4, 11))):
        op = draw(st.sampled_from(["Conv", "Conv", "Relu", "Add", "Mul"]))
        a = draw(st.sampled_from(values[-5:]))
        b = draw(st.sampled_from(["V", "W", "D"] if op == "Conv" else values[-5:]))
        lines.append(f"v{k} = {op}({a})" if op == "Relu" else f"v{k} = {op}({a}, {b})")
        values.append(f"v{k}")
    return small("\n".join(lines))


@settings(max_examples=60)
@given(conv_graphs(), st.randoms(use_true_random=False))
def test_matches_after_an_edit_are_those_of_a_full_scan(g: Graph, rng: random.Random) -> None:
    walk(g, default_set(), 10, rng)


@pytest.mark.parametrize("name", GRAPHS)
def test_matches_stay_those_of_a_full_scan_on_the_zoo(name: str) -> None:
    params = {**GRAPHS[name], **{"nasnet_a": {"depth": (1, 1, 1)}, "nasrnn": {"length": 2}}.get(name, {})}
    walk(from_proto(zoo.build(name, **params)), default_set(), 12, random.Random(0))


@needs_file
def test_convs_far_apart_that_share_only_a_weight_are_found_too() -> None:
    far = "\n".join(f"{side}{i} = Tanh({side + str(i - 1) if i else side})" for side in "xz" for i in range(8))
    g = small(f"{far}\nS = Add(V, W)\na = Conv(x7, S)\nb = Conv(z7, V)", S=[4, 4, 3, 3])
    found = MatchSet(g, default_set())
    (match,) = (m for m in found if m.rule.name == "taso-59")
    after = g.replace(match.edit)
    assert listed(found.after(after, match)) == listed(MatchSet(after, default_set()))


# ------------------------------------------------------------------ configuration


def chosen(*overrides: str) -> RuleSet:
    return rule_set(plain(load_config("optimize", ["model=resnet50", "rules=taso", *overrides]).rules))


def test_rules_taso_is_the_hand_written_rules_without_a_file() -> None:
    assert [r.name for r in chosen()] == [r.name for r in tried(hand_rules())]
    assert len(chosen("rules.exclude=[]")) == 18


@needs_file
def test_rules_taso_takes_a_file() -> None:
    assert listed_names(chosen(f"rules.file={FILE}")) == listed_names(tried(taso_rules(FILE)))
    assert len(chosen(f"rules.file={FILE}")) == 14 + 133 - 10
    assert len(chosen(f"rules.file={FILE}", "rules.exclude=[]")) == 18 + 133


def listed_names(rules: Iterable[Rule]) -> list[str]:
    return [r.name for r in rules]


def test_a_wrong_file_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="cannot read the rule file"):
        chosen("rules.file=/nowhere.pb")
