"""Make torch's waiting threads sleep, not spin. Imported before everything else, so it imports nothing slow."""

import os


def wait_asleep() -> None:
    """Let torch's threads wait for each other asleep, unless the user has said how; before torch is imported.

    By default they spin, and so take the core from the very thread that they wait for when other programs run too.
    """
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"} & set(os.environ):
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
