"""The command ``rankwise``; heavy imports wait until a command needs them."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        import typer
    except ImportError:
        sys.exit("rankwise: the command needs typer and rich; pip install 'rankwise[cli]'")
    app = typer.Typer(no_args_is_help=True, add_completion=False)

    @app.callback()
    def rankwise() -> None:
        """Learning to rank from scores, groups and pairwise preferences."""

    @app.command()
    def info(
        json: bool = typer.Option(False, "--json", help="Print JSON for machines."),
    ) -> None:
        """Say what this installation is made of, and whether the compiled sweep is active."""
        from rankwise.environment import describe_environment

        found = describe_environment()
        if json:
            from json import dumps

            typer.echo(dumps(found, indent=2))
            return
        sweep = (
            "active" if found["compiled"] else "missing: NumPy sweeps in use, several times slower"
        )
        rows = [
            *found["versions"].items(),
            ("compiled sweep", sweep),
            ("BLAS", "; ".join(found["blas"]) or "unknown"),
            ("extras", ", ".join(k for k, v in found["extras"].items() if v) or "none"),
            ("memory", f"{found['available_gib']} GiB available"),
            ("platform", found["platform"]),
        ]
        for name, value in rows:
            typer.echo(f"{name:<16}{value}")

    app()


if __name__ == "__main__":
    main()
