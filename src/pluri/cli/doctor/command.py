"""``pluri doctor``: facts about the installation, and small computations whose answers are known."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pluri.cli import options
from pluri.cli.console import FAILED, note, print_json, reporting, show


def doctor(
    self_test: Annotated[
        bool, typer.Option("--self-test/--no-self-test", help="Whether to compute what has a known answer.")
    ] = True,
    as_json: options.Json = False,
) -> None:
    """Say what is installed here, and check that it computes what it should.

    Versions, processors and threads, the folder of compiled code, the extras; then six small computations, each held
    against an answer found another way: about ten seconds the first time, when they are compiled. Ends with code 1 if
    anything is wrong. Put its output into a report of a mistake.
    """
    with reporting():
        from pluri.cli.doctor.machine import facts, problems

        found = facts()
        if not as_json:
            _show_facts(found)
        findings = _self_test(quiet=as_json) if self_test else []
        wrong = problems(found) + [f"{one.title}: {one.trouble}" for one in findings if one.trouble]
        if as_json:
            print_json({**found, "self-test": [one._asdict() for one in findings], "problems": wrong})
        else:
            show("\n".join(["", *wrong]) if wrong else "\nNo problem found.")
        if wrong:
            raise typer.Exit(FAILED)


def _show_facts(found: dict[str, dict[str, Any]]) -> None:
    for heading, rows in found.items():
        show(f"\n{heading}" if heading != "versions" else heading)
        for name, value in rows.items():
            show(f"  {name}: {_extra(name, value) if heading == 'extras' else value}")


def _extra(name: str, packages: dict[str, Any]) -> str:
    """Packages of an extra with their versions, or what to install."""
    missing = [package for package, version in packages.items() if version is None]
    if missing:
        return f'{", ".join(missing)} missing: pip install "pluri[{name}]"'
    return ", ".join(f"{package} {version}" for package, version in packages.items())


def _self_test(quiet: bool) -> list[Any]:
    from pluri.cli.doctor.self_test import CHECKS, run

    if not quiet:
        note("\nThe first run compiles what it needs; later runs are faster.")
        show("\nself-test")
    findings = []
    for title, check in CHECKS.items():
        findings.append(run(title, check))
        if not quiet:
            verdict = "FAILED" if findings[-1].trouble else "right"
            show(f"  {title}: {verdict} ({findings[-1].seconds:.1f} s)")
    return findings
