"""Trains several agents: python scripts/sweep.py -m icm.beta=0.1,0.2 seed=1,2 model=NAME [key=value ...]

Every key of train.py may have several values; all combinations are run, each in a folder of its own, as one group of W&B.
hydra/launcher=joblib hydra.launcher.n_jobs=2 runs them side by side; ray and submitit_slurm are launchers too, once installed.

Exit code: 0, 1 if a job failed (the others run on; a table says which), 130 interrupted.
"""

import sys

from cgorl import cli

if __name__ == "__main__":
    sys.exit(cli.sweep(sys.argv[1:], __doc__))
