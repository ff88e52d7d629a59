"""``pluri models`` and ``pluri inspect``: what there is, and what is in a file."""

from __future__ import annotations

from pluri.cli import options
from pluri.cli.console import print_json, reporting
from pluri.cli.registry import fitted_part, parameters, summary_line
from pluri.cli.registry import models as known_models


def models(as_json: options.Json = False) -> None:
    """List the models and their parameters."""
    with reporting():
        if as_json:
            print_json(
                [
                    {"name": name, "summary": summary_line(kind), "parameters": parameters(kind)}
                    for name, kind in known_models().items()
                ]
            )
            return
        from rich.console import Console
        from rich.markup import escape

        console = Console()
        for name, kind in known_models().items():
            settings = ", ".join(f"{key}={value!r}" for key, value in parameters(kind).items())
            console.print(f"[bold]{name}[/]  {escape(summary_line(kind))}", highlight=False)
            console.print(settings, style="dim", highlight=False, markup=False, soft_wrap=False)
            console.print()


def inspect(model: options.ModelFile, as_json: options.Json = False) -> None:
    """Show what a model file holds: class, versions, parameters, and how the fit went."""
    with reporting():
        from pluri.cli.fitting import describe_fit
        from pluri.io import load, read_info

        info = read_info(model)
        estimator = load(model)
        if as_json:
            print_json(
                {
                    "class": info.class_name,
                    "versions": info.versions,
                    "notes": info.notes,
                    "parameters": estimator.get_params(),
                    "fit": describe_fit(estimator),
                }
            )
            return
        saved_by = ", ".join(f"{package} {version}" for package, version in info.versions.items())
        print(f"{model}: {info.class_name}\nsaved by {saved_by}")
        for name, value in info.notes.items():
            if value is not None:
                print(f"{name}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
        print(f"\n{estimator!r}\n")
        described = fitted_part(estimator)
        if hasattr(described, "summary") and hasattr(described, "transmat_"):
            print(described.summary())
        else:
            print("not fitted")
