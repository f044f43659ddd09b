"""RuleBrowser: the rules as pictures and in words, where they match in a model, and why not at a node."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import traitlets

from cgorl import config
from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.ir.simplify import simplify
from cgorl.report.graphs.packed import pack, packed
from cgorl.report.graphs.scene import scene
from cgorl.report.rules.picture import picture
from cgorl.report.rules.places import PlaceError, node_name, why_not
from cgorl.rules.conditions import CONDITIONS
from cgorl.rules.matches import MatchSet
from cgorl.rules.proof import verify
from cgorl.rules.rule import Match, Rule
from cgorl.rules.rule_set import RuleSet
from cgorl.widgets.assets import module
from cgorl.widgets.source import Source, source
from cgorl.widgets.widget import Widget, figure, row

_LISTED = 200
_INSTANCES = 15


class RuleBrowser(Widget):
    """Rules to look at: `RuleBrowser()`, `RuleBrowser("inception_v3")`, `RuleBrowser("in.onnx", rules="atomic", rule="add-convs")`.

    `rules` is a rule set or a choice of conf/rules, `rule` the one that is shown first. With a model (a file or a name of the
    zoo, cleaned up as before a search; a Graph is taken as it is) it says where each rule matches and what that gains by
    `cost`, and why a rule does not match at the node that one clicks on. Raises ConfigError, ModelError, ZooError, DimsError.
    """

    _esm = module("rule_browser.js")
    listing = traitlets.Bytes(b"").tag(sync=True)
    picture = traitlets.Bytes(b"").tag(sync=True)
    rule = traitlets.Unicode("").tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self,
        model: Graph | str | Path | None = None,
        rules: RuleSet | str = "default",
        cost: CostModel | str | None = "roofline",
        rule: str | None = None,
        dims: Mapping[str, int] | None = None,
        unbound: int | None = None,
        **zoo: Any,
    ) -> None:
        if isinstance(rules, str):
            rules = config.rule_set(config.plain(config.load_config("rules", [f"rules={rules}"]))["rules"])
        self._rules = {r.name: r for r in rules}
        if rule is not None:
            config.narrowed(rules, [rule])  # says which one may have been meant
        self._source: Source | None = None
        self._matches: dict[str, list[tuple[float, Match]]] = {}
        drawn, self._boxes = b"", list[int]()
        if model is not None:
            given = source(model, None, dims, unbound, zoo)
            graph = given.graph if isinstance(model, Graph) else simplify(given.graph).graph
            self._source = source(graph, cost, dims, unbound, {})._replace(name=given.name)
            self._find(graph, rules)
            made = scene(graph, self._source.cost)
            drawn, self._boxes = packed(made), [b.nodes[0] if b.nodes else -1 for b in made.boxes]
            self._places = made.places()
        first = rule or next(iter(self._matches), "") or next(iter(self._rules), "")
        count = sum(map(len, self._matches.values()))
        title = f"{len(self._rules)} rules" + (f", {count} matches in {self._source.name}" if self._source else "")
        super().__init__(listing=self._listing(), picture=drawn, rule=first, title=title)
        self.on_msg(self._asked)

    def _find(self, graph: Graph, rules: RuleSet) -> None:
        cost = self._source.cost if self._source else None
        for m in MatchSet(graph, rules):
            self._matches.setdefault(m.rule.name, []).append((cost.gain(graph, m.edit) if cost is not None else 0.0, m))
        for found in self._matches.values():
            found.sort(key=lambda pair: -pair[0])

    def _listing(self) -> bytes:
        """A row a rule: name, tags, what it does, how often it matches, the largest gain in ms."""
        rows = []
        for r in self._rules.values():
            found = self._matches.get(r.name, [])
            rows.append([r.name, " ".join(r.tags), r.doc, len(found), found[0][0] if found else 0.0])
        return pack({"rows": rows, "priced": self._source is not None and self._source.cost is not None}, {})

    def _asked(self, _: Any, content: Mapping[str, Any], __: Any) -> None:
        rule = self._rules.get(str(content.get("rule")))
        if rule is None:
            return
        kind, about = content.get("kind"), {"kind": content.get("kind"), "rule": rule.name}
        if kind == "rule":
            self.send({**about, **self._told(rule), "matches": self._placed(rule)})
        elif kind == "verify":
            proof = verify(rule, np.random.default_rng(0), _INSTANCES)
            self.send({**about, "ok": proof.ok, "text": str(proof).partition(": ")[2]})
        elif kind == "why" and content.get("box") in range(len(self._boxes)):
            self.send({**about, "box": content["box"], **self._why(rule, self._boxes[content["box"]])})

    def _told(self, rule: Rule) -> dict[str, Any]:
        words = [[str(c), _first_line(CONDITIONS[c.op].__doc__)] for c in rule.conditions]
        about = {"svg": picture(rule), "text": str(rule), "doc": rule.doc, "conditions": words}
        return {**about, "tags": list(rule.tags), "provenance": rule.provenance}

    def _placed(self, rule: Rule) -> list[list[Any]]:
        if self._source is None:
            return []
        graph, found = self._source.graph, self._matches.get(rule.name, [])
        return [
            [node_name(graph, m.nodes[0]), gain, m.growth, sorted({self._places[i] for i in m.nodes if i in self._places})]
            for gain, m in found[:_LISTED]
        ]

    def why(self, node: str, rule: str | None = None) -> str:
        """Why a rule (the one that is shown, unless one is named) does not match at the node of that name, in a sentence.

        Raises PlaceError for no such rule or node, and where there is no model.
        """
        name = rule or self.rule
        if self._source is None:
            raise PlaceError("there is no model to look into: RuleBrowser(model, ...)")
        if name not in self._rules:
            raise PlaceError(f"there is no rule '{name}' among these {len(self._rules)}")
        [(_, reason)] = why_not(self._source.graph, [self._rules[name]], node)
        return f"{name} does not match at {node}: {reason}" if reason else f"{name} matches at {node}"

    def _why(self, rule: Rule, i: int) -> dict[str, Any]:
        assert self._source is not None
        if i < 0:
            return {"node": "an output", "why": "it is an output of the model, no node", "others": []}
        [(_, reason)] = why_not(self._source.graph, [rule], f"#{i}")
        here = [name for name, found in self._matches.items() if name != rule.name and any(i in m.nodes for _, m in found)]
        return {"node": node_name(self._source.graph, i), "why": reason, "others": here}

    def static(self) -> str:
        """The rule that is shown as a picture, and a table of those that match (of all, without a model)."""
        shown = self._rules.get(self.rule)
        parts = [figure(picture(shown), f"{shown.name}: {shown.doc}")] if shown is not None else []
        listed = sorted(self._matches, key=lambda name: -self._matches[name][0][0]) if self._source else list(self._rules)
        head = ["rule", "tags", "what it does", *(("matches", "best gain, ms") if self._source else ())]
        parts.append(f"<p>{escape(self.title)}</p><table>{row(head, (3, 4), 'th')}")
        for name in listed:
            r, found = self._rules[name], self._matches.get(name, [])
            cells = [name, " ".join(r.tags), r.doc, *([str(len(found)), f"{found[0][0]:.4g}"] if found else [])]
            parts.append(row(cells, (3, 4)))
        silent = len(self._rules) - len(listed)
        return "".join([*parts, "</table>", f"<p>{silent} rules match nowhere in it</p>" if silent else ""])

    def __repr__(self) -> str:
        """One line."""
        return f"RuleBrowser({self.title})"


def _first_line(doc: str | None) -> str:
    return (doc or "").strip().partition("\n")[0]
