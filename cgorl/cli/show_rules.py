"""rules.py: rules listed, drawn, proven, and explained on a model."""

from __future__ import annotations

from typing import Any

from cgorl.cli.guard import CODES, guarded


def rules(argv: list[str], doc: str) -> int:
    """Runs conf/rules.yaml with the words and overrides `argv`; returns the exit code. `doc` is the script's own help."""
    return guarded(lambda runs: _rules(argv, doc))


def _rules(argv: list[str], doc: str) -> int:
    from cgorl import config

    if {"-h", "--help"} & set(argv):
        print(f"{doc}\n{config.usage('rules')}", flush=True)
        return 0
    words = [a for a in argv if "=" not in a]
    cfg = config.load_config("rules", [a for a in argv if "=" in a])
    options: dict[str, Any] = config.plain(cfg)
    config.check(options)
    command = words.pop(0) if words and words[0] in ("verify", "catalogue") else ""
    chosen = config.narrowed(config.rule_set(options["rules"]), [*words, *([options["rule"]] if options["rule"] else [])])
    from pathlib import Path

    from rich.console import Console

    from cgorl import jobs
    from cgorl.report.rules import listing, places
    from cgorl.report.rules.catalogue import catalogue

    console = Console()
    if command == "verify":
        from cgorl.rules.proof import verify_all

        proofs = verify_all(chosen, options["seed"], options["instances"])
        listing.show_proofs(proofs, console)
        return 0 if all(p.ok for p in proofs) else CODES["proof failed"]
    if command == "catalogue":
        entries = catalogue(jobs.models(cfg), chosen, jobs.cost(cfg), rounds=2)
        listing.show_catalogue(entries, console)
        if options["output"]:
            listing.write_catalogue(entries, Path(options["output"]), " ".join(["python scripts/rules.py", *argv]))
        return 0
    if options["model"]:
        graph, cost = jobs.simplified(cfg), jobs.cost(cfg)
        if options["why"]:
            listing.show_reasons(places.why_not(graph, chosen, str(options["why"])), console)
        else:
            listing.show_places(places.places(graph, chosen, cost), console, options["shown"])
    else:
        listing.show_rules(tuple(chosen), console)
    if options["output"]:
        try:
            written = listing.draw(chosen, Path(options["output"]))
        except OSError as e:
            raise config.ConfigError(f"cannot draw into the folder '{options['output']}': {e.strerror or e}") from None
        console.print(
            f"drawn     {len(written) - 1} picture{'s' if len(written) > 2 else ''}, {written[-1]}", highlight=False, soft_wrap=True
        )
    return 0
