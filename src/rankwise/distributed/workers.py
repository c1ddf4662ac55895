"""Checks of the workers of a Dask cluster."""

from __future__ import annotations

from importlib.util import find_spec

from rankwise.environment import require


def check_workers() -> None:
    """Raise a RuntimeError that names the workers on which rankwise cannot be imported.

    Without a client, Dask computes in this process, and there is nothing to check.
    """
    if find_spec("distributed") is None:
        return
    distributed = require("distributed", "rankwise.distributed")
    try:
        client = distributed.get_client()
    except ValueError:  # no client
        return
    specs = client.run(find_spec, "rankwise")
    missing = sorted(worker for worker, spec in specs.items() if spec is None)
    if missing:
        raise RuntimeError(
            f"rankwise is not installed on {len(missing)} of {len(specs)} Dask workers: "
            f"{', '.join(missing[:5])}. Install the same version on every worker, for example with "
            "client.register_plugin(distributed.PipInstall(['rankwise']))."
        )
