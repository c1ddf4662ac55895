"""Checks of the workers of a Dask cluster."""

from __future__ import annotations

from importlib.util import find_spec

from rankwise.environment import require


def check_workers() -> None:
    """Raise a RuntimeError that names the workers on which rankwise cannot be imported.

    Without a client, Dask computes in this process, and there is nothing to check.
    """
    if find_spec("distributed") is None:  # then Dask runs in this process
        return
    distributed = require("distributed", "rankwise.distributed")
    try:
        client = distributed.get_client()
    except ValueError:  # no client
        return
    spec_of_worker = client.run(find_spec, "rankwise")
    lacking = sorted(worker for worker, spec in spec_of_worker.items() if spec is None)
    if lacking:
        raise RuntimeError(
            f"rankwise is not installed on {len(lacking)} of {len(spec_of_worker)} Dask workers: "
            f"{', '.join(lacking[:5])}. Install the same version on every worker, for example with "
            "client.register_plugin(distributed.PipInstall(['rankwise']))."
        )
