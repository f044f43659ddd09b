"""Trains an agent: python scripts/train.py model=FILE_OR_NAME [key=value ...]

The run's folder gets metrics.jsonl, checkpoint.pt (after each update; resume=FILE goes on from it, and search=agent
search.checkpoint=FILE uses it), the best rewrites as trace.json and the graph that they lead to as best.onnx.

Exit code: 0, 130 interrupted (the checkpoint is there), 1 error.
"""

import sys

from cgorl import cli

if __name__ == "__main__":
    sys.exit(cli.train(sys.argv[1:], __doc__))
